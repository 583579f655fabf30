/** Only the files of this service, and no inline script or style. */
export const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export interface Page {
  readonly title: string;
  /** The path of the public address, for links. */
  readonly basePath: string;
  /** Which link of the head is the page's own. */
  readonly current: 'reference' | 'guides';
  /** HTML. */
  readonly body: string;
  /** Paths of further files below `/docs`. */
  readonly styles?: readonly string[];
  readonly scripts?: readonly string[];
}

/** The HTML of a page, with our name and the way to the others. */
export function pageHtml({ title, basePath, current, body, styles = [], scripts = [] }: Page): string {
  const docs = `${basePath}/docs`;
  const link = (name: Page['current'], path: string, text: string) =>
    `<a href="${docs}${path}"${name === current ? ' aria-current="page"' : ''}>${text}</a>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Annals</title>
<link rel="icon" type="image/svg+xml" href="${docs}/site/logo.svg">
${styles.map((path) => `<link rel="stylesheet" href="${docs}${path}">\n`).join('')}<link rel="stylesheet" href="${docs}/site/tokens.css"><link rel="stylesheet" href="${docs}/site/style.css">
</head>
<body>
<header class="site">
<a class="name" href="${docs}/guides"><img src="${docs}/site/logo.svg" alt="" width="22" height="22">Annals</a>
<nav aria-label="Pages">${link('reference', '', 'API reference')}${link('guides', '/guides', 'Guides')}<a href="${basePath}/openapi.json">OpenAPI</a><a href="${basePath}/console/">Console</a></nav>
</header>
${body}
${scripts.map((path) => `<script src="${docs}${path}"></script>\n`).join('')}</body>
</html>
`;
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
