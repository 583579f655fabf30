import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** The packages of these modules with version and licence text, which copies must include. */
export function licences(modules: readonly string[]): string {
  const folders = new Set(modules.flatMap((module) => packageOf(module) ?? []));
  const texts = new Map([...folders].map((folder) => licenceOf(folder)));
  const list = [...texts].sort(([one], [other]) => (one < other ? -1 : 1));
  return `dist/ has code of these packages.\n\n${list.map(([title, text]) => `${title}\n\n${text}`).join(rule)}`;
}

const rule = `\n${'-'.repeat(80)}\n\n`;

/** The folder of the npm package that has the module; undefined for our own modules. */
function packageOf(module: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(module.replaceAll('\\', '/'))?.[0];
}

function licenceOf(folder: string): [title: string, text: string] {
  const { name, version, license }: Manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)(\.\w+)?$/i.test(entry));
  const text =
    file === undefined ? 'The package has no file with the text.' : readFileSync(join(folder, file), 'utf8').trim();
  return [`${name} ${version} (${license ?? 'see below'})`, `${text}\n`];
}
