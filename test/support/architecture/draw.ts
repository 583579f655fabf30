import { type Import, layerOf, layers, moduleOf } from './imports.ts';

const [width, margin, between, lineHeight, arrowHeight] = [1000, 8, 8, 15, 26];

/**
 * The modules in their layers as an SVG, each with its folders. An arrow leads to the next layer; beside it stand the
 * modules further down that the layer imports as well.
 */
export function drawArchitecture(files: readonly string[], imports: readonly Import[]): string {
  const parts: string[] = [];
  let y = margin;
  for (const [row, modules] of layers.entries()) {
    const folders = modules.map((module) => foldersOf(module, files));
    const height = 14 + lineHeight * (1 + Math.max(...folders.map(({ length }) => length)));
    const each = (width - 2 * margin - between * (modules.length - 1)) / modules.length;
    for (const [place, module] of modules.entries()) {
      const x = margin + place * (each + between);
      const lines = [module, ...(folders[place] ?? [])];
      parts.push(`<rect x="${x}" y="${y}" width="${each}" height="${height}" rx="5"/>`);
      for (const [line, text] of lines.entries()) {
        const style = line === 0 ? ' class="name"' : '';
        parts.push(`<text x="${x + each / 2}" y="${y + 19 + line * lineHeight}"${style}>${text}</text>`);
      }
    }
    y += height;
    if (row === layers.length - 1) break;
    const further = modulesBelow(row, imports).filter((module) => layerOf(module) > row + 1);
    parts.push(`<path d="M${width / 2} ${y + 2}V${y + arrowHeight - 4}" marker-end="url(#to)"/>`);
    if (further.length > 0)
      parts.push(`<text x="${width / 2 + 12}" y="${y + 17}" class="also">also ${further.join(', ')}</text>`);
    y += arrowHeight;
  }
  const height = y + margin;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="The modules of Annals and the direction of their imports">
<style>rect{fill:#eef3f8;stroke:#5b7a99}text{font:11px sans-serif;fill:#3f4f60;text-anchor:middle}.name{font-weight:600;font-size:14px;fill:#16293d}.also{text-anchor:start}path{stroke:#5b7a99}</style>
<rect x="0" y="0" width="${width}" height="${height}" style="fill:#fff;stroke:none"/>
<defs><marker id="to" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#5b7a99;stroke:none"/></marker></defs>
${parts.join('\n')}
</svg>
`;
}

function foldersOf(module: string, files: readonly string[]): string[] {
  const folders = files.filter((file) => moduleOf(file) === module).map((file) => file.split('/'));
  return [...new Set(folders.flatMap(([, folder, file]) => (folder && file ? [folder] : [])))].sort();
}

function modulesBelow(row: number, imports: readonly Import[]): string[] {
  const found = imports.filter(({ from, to }) => layerOf(moduleOf(from)) === row && layerOf(moduleOf(to)) > row);
  return [...new Set(found.map(({ to }) => moduleOf(to)))].sort(
    (one, other) => layerOf(one) - layerOf(other) || (one < other ? -1 : 1),
  );
}
