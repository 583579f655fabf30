// The first that is found: browsers name those that they descend from as well.
const browsers: readonly (readonly [string, RegExp])[] = [
  ['Edge', /\bEdg(?:e|A|iOS)?\/(\d+)/],
  ['Opera', /\bOPR\/(\d+)/],
  ['Firefox', /\b(?:Firefox|FxiOS)\/(\d+)/],
  ['Chrome', /\b(?:Headless)?(?:Chrome|CriOS)\/(\d+)/],
  ['Safari', /\bVersion\/(\d+)\S* (?:Mobile\/\S+ )?Safari\//],
];

const systems: readonly (readonly [string, RegExp])[] = [
  ['iOS', /\b(?:iPhone|iPad)\b/],
  ['Android', /\bAndroid\b/],
  ['Windows', /\bWindows\b/],
  ['macOS', /\bMacintosh\b/],
  ['Linux', /\bLinux\b/],
];

/**
 * The browser and its system, or the first word of another program, of a `User-Agent`.
 *
 * @example
 * programText('Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'); // 'Firefox 140, Linux'
 * programText('curl/8.14.1'); // 'curl/8.14.1'
 */
export function programText(program: string): string {
  const [first = ''] = program.split(' ');
  for (const [browser, pattern] of first.startsWith('Mozilla/') ? browsers : []) {
    const version = pattern.exec(program)?.[1];
    if (version === undefined) continue;
    const system = systems.find(([, ofSystem]) => ofSystem.test(program))?.[0];
    return `${browser} ${version}${system === undefined ? '' : `, ${system}`}`;
  }
  return first;
}
