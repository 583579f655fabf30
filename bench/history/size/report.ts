import type { Asked } from './ask.ts';
import type { Growth } from './grow.ts';
import type { SizesOfTables } from './measures.ts';

/** What is known after a period has been recorded. */
export interface Step {
  entries: number;
  growth: Growth;
  sizes: SizesOfTables;
  asked?: Asked[];
}

/** The tables of a run. Sizes and queries are those of the steps that were asked. */
export function report(steps: readonly Step[]): string {
  const shown = steps.filter(({ asked }) => asked !== undefined);
  return [growthTable(steps), sizeTable(shown), askedTable(shown)].join('\n');
}

/** What each period's import has cost an entry. */
function growthTable(steps: readonly Step[]): string {
  const lines = steps.map(({ entries, growth: { recorded, lineBytes, service, database, walBytes, seconds }, sizes }) =>
    line([
      count(entries),
      count(recorded),
      count(lineBytes / recorded),
      micro(service / recorded),
      micro(database / recorded),
      micro((service + database) / recorded),
      count(walBytes / recorded),
      count(total(sizes) / entries),
      count(recorded / seconds),
    ]),
  );
  return table(
    [
      'entries after it',
      'recorded',
      'bytes a line',
      'service, µs an entry',
      'database, µs an entry',
      'both, µs an entry',
      'bytes of WAL an entry',
      'bytes on disk an entry, all so far',
      'entries a second by the clock',
    ],
    lines,
  );
}

function sizeTable(steps: readonly Step[]): string {
  const names = new Map<string, (sizes: SizesOfTables) => number>();
  for (const [name, { indexes }] of Object.entries(steps.at(-1)?.sizes ?? {})) {
    names.set(`\`${name}\`, rows`, (sizes) => sizes[name]?.rows ?? 0);
    for (const index of Object.keys(indexes)) names.set(`\`${index}\``, (sizes) => sizes[name]?.indexes[index] ?? 0);
  }
  names.set('all', total);
  const lines = [...names]
    .filter(([, of]) => steps.some(({ sizes }) => of(sizes) > 1024 * 1024))
    .map(([name, of]) =>
      line([
        name,
        ...steps.flatMap(({ entries, sizes }) => [count(of(sizes) / 1024 ** 2), (of(sizes) / entries).toFixed(1)]),
      ]),
    );
  return table(['part', ...steps.flatMap(({ entries }) => [`MiB at ${count(entries)}`, 'bytes an entry'])], lines);
}

function askedTable(steps: readonly Step[]): string {
  const lines = (steps[0]?.asked ?? []).map(({ row, read }) => {
    const cells = steps.flatMap(({ asked }) => {
      const same = asked?.find((other) => other.row === row && other.read === read);
      if (same === undefined) return ['', ''];
      return [
        count(same.matches),
        `${same.service.toFixed(1)} + ${same.database.toFixed(1)} (${same.worst.toFixed(0)})`,
      ];
    });
    return line([read, row, ...cells]);
  });
  const header = steps.flatMap(({ entries }) => [
    `matches at ${count(entries)}`,
    'service + database, ms (worst of both)',
  ]);
  return table(['read', 'query', ...header], lines);
}

function total(sizes: SizesOfTables): number {
  const bytes = Object.values(sizes).flatMap(({ rows, indexes }) => [rows, ...Object.values(indexes)]);
  return bytes.reduce((sum, one) => sum + one, 0);
}

function table(header: readonly string[], lines: readonly string[]): string {
  return `${line(header)}\n${line(header.map(() => '---:'))}\n${lines.join('\n')}\n`;
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function micro(milliseconds: number): string {
  return (milliseconds * 1000).toFixed(1);
}
