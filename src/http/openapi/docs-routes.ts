import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyReply } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import { packageFolder } from '../../core/package-folder.ts';
import type { HttpServer } from '../http-server-type.ts';
import { escapeHtml, type Guide, type GuideGroup, Guides, recordsOfDecisions } from './guides.ts';

/** Only files of this service, no inline scripts or styles. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

interface Page {
  readonly title: string;
  /** The path of the public address, for links. */
  readonly basePath: string;
  /** The current link of the header. */
  readonly current: 'reference' | 'guides';
  /** HTML. */
  readonly body: string;
  /** Paths of further files below `/docs`. */
  readonly styles?: readonly string[];
  readonly scripts?: readonly string[];
}

/** The HTML of a page, with the site's header. */
function pageHtml({ title, basePath, current, body, styles = [], scripts = [] }: Page): string {
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

const hidden = { schema: { hide: true } } as const;

/** The API reference at `/docs` and the guides under `/docs/guides`. */
export async function docsRoutes(app: HttpServer, { basePath }: { basePath: string }): Promise<void> {
  const guides = new Guides(join(packageFolder(), 'docs'), basePath);

  async function show(reply: FastifyReply, page: Omit<Page, 'basePath'>): Promise<FastifyReply> {
    return await reply
      .headers({ 'content-security-policy': pagePolicy, 'cache-control': 'no-cache' })
      .type('text/html; charset=utf-8')
      .send(pageHtml({ ...page, basePath }));
  }

  for (const path of ['/docs', '/docs/']) {
    app.get(path, hidden, async (_request, reply) => await show(reply, reference(basePath)));
  }

  for (const path of ['/docs/guides', '/docs/guides/']) {
    app.get(path, hidden, async (_request, reply) => {
      return await show(reply, guidePage(guides, basePath, { title: 'Guides', html: indexOf(guides, basePath) }));
    });
  }

  app.get('/docs/guides/search.json', hidden, async (_request, reply) => {
    return await reply.header('cache-control', 'public, max-age=3600').send(guides.searchEntries());
  });

  app.get<{ Params: { '*': string } }>('/docs/guides/*', hidden, async (request, reply) => {
    const guide = await guides.find(request.params['*'].replace(/\.md$/, ''));
    if (guide === undefined) throw new AnnalsError('resource_not_found', 'There is no such guide.');
    return await show(reply, guidePage(guides, basePath, guide));
  });

  await app.register(fastifyStatic, {
    root: join(packageFolder(), 'docs', 'site'),
    prefix: '/docs/site/',
    decorateReply: false,
    maxAge: '1h',
  });
  await app.register(fastifyStatic, {
    root: join(packageFolder(), 'docs', 'images'),
    prefix: '/docs/guides/images/',
    decorateReply: false,
    maxAge: '1h',
  });
  await app.register(fastifyStatic, {
    root: viewerFolder(),
    prefix: '/docs/viewer/',
    decorateReply: false,
    allowedPath: (path) => path === '/swagger-ui-bundle.js' || path === '/swagger-ui.css',
    maxAge: '1h',
  });
}

/** The folder with the scripts and styles of Swagger UI. */
function viewerFolder(): string {
  return join(dirname(fileURLToPath(import.meta.resolve('@fastify/swagger-ui'))), 'static');
}

function reference(basePath: string): Omit<Page, 'basePath'> {
  return {
    title: 'API reference',
    current: 'reference',
    body: `<main id="reference" data-document="${escapeHtml(`${basePath}/openapi.json`)}"></main>`,
    styles: ['/viewer/swagger-ui.css'],
    scripts: ['/viewer/swagger-ui-bundle.js', '/site/reference.js'],
  };
}

/** A guide beside the list of all guides and their search. */
function guidePage(
  guides: Guides,
  basePath: string,
  { name = '', title, html }: Pick<Guide, 'title' | 'html'> & { name?: string },
): Omit<Page, 'basePath'> {
  const groups = guides
    .groups()
    .filter((group) => group.title !== recordsOfDecisions)
    .map((group) => `<p class="group">${escapeHtml(group.title)}</p>${listOf(group, { basePath, current: name })}`);
  const body = `<div class="guides">
<nav class="guides-nav" aria-label="Guides">
<search>
<label for="guide-search">Search the guides</label>
<input id="guide-search" type="search" autocomplete="off" data-index="${escapeHtml(`${basePath}/docs/guides/search.json`)}">
<p id="guide-found" role="status"></p>
<ol id="guide-results"></ol>
</search>
<details id="guide-groups"><summary>All guides</summary>${groups.join('\n')}</details>
</nav>
<main class="guide">${html}</main>
</div>`;
  return { title, current: 'guides', body, scripts: ['/site/guides.js'] };
}

function listOf({ guides }: GuideGroup, { basePath, current }: { basePath: string; current?: string }): string {
  const items = guides.map(({ name, title }) => {
    const mark = name === current ? ' aria-current="page"' : '';
    return `<li><a href="${escapeHtml(`${basePath}/docs/guides/${name}`)}"${mark}>${escapeHtml(title)}</a></li>`;
  });
  return `<ul>${items.join('\n')}</ul>`;
}

function indexOf(guides: Guides, basePath: string): string {
  const groups = guides
    .groups()
    .map((group) => `<section><h2>${escapeHtml(group.title)}</h2>${listOf(group, { basePath })}</section>`);
  return `<h1>Guides</h1>\n<div class="guide-index">${groups.join('\n')}</div>`;
}
