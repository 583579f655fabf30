import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** What a process tells of its memory at a moment, in bytes. */
export interface MemoryFigures {
  pid: number;
  role: string;
  /** Milliseconds since 1970. */
  at: number;
  /** Milliseconds of processor time so far. */
  cpu: number;
  rss: number;
  heapUsed: number;
  heapTotal: number;
  /** With the buffers. */
  external: number;
  arrayBuffers: number;
  /** The used heap after the last full collection of garbage; undefined if there was none since the line before. */
  afterCollection?: number;
  /** Resident bytes by what they are mapped for. */
  heap: number;
  anonymous: number;
  files: number;
}

const mebibyte = 1024 * 1024;
/** Minutes that a process has to live for a slope. */
const minMinutes = 4;

/** The memory of processes over their lives, as they write it to a file themselves. */
export class MemoryOverTime {
  readonly #file: string;
  readonly #every: number;

  /** Each process tells every so many seconds. */
  constructor(folder: string, every: number) {
    this.#file = join(folder, `memory-${process.pid}.jsonl`);
    this.#every = every;
    rmSync(this.#file, { force: true });
  }

  /** The environment of the processes that are to tell. `nodeOptions` are further options of Node. */
  environment(nodeOptions = ''): Record<'NODE_OPTIONS' | 'HEAP_FILE' | 'HEAP_EVERY', string> {
    const preload = pathToFileURL(join(import.meta.dirname, 'tell-heap.ts')).href;
    const options = `--import=${preload} ${nodeOptions}`.trim();
    return { NODE_OPTIONS: options, HEAP_FILE: this.#file, HEAP_EVERY: String(this.#every) };
  }

  /** All figures of each process, in order. */
  all(): Map<number, MemoryFigures[]> {
    if (!existsSync(this.#file)) return new Map();
    const lines = readFileSync(this.#file, 'utf8').split('\n').slice(0, -1);
    return Map.groupBy(
      lines.map((line) => JSON.parse(line) as MemoryFigures),
      ({ pid }) => pid,
    );
  }

  /** One line for each process that has told of itself since a moment. */
  now(since: number): string[] {
    return [...this.all().values()].flatMap((figures) => {
      const last = figures.at(-1);
      if (last === undefined || last.at < since) return [];
      const { rss, heapUsed, external } = last;
      return [
        `${nameOf(last)}: RSS ${mebibytes(rss)}, heap used ${mebibytes(heapUsed)}, external ${mebibytes(external)} MiB`,
      ];
    });
  }

  /** One line for each process that lived long enough: how its memory grew over the last two thirds of its life. */
  slopes(): string[] {
    return [...this.all().values()].flatMap((figures) => {
      const [first, last] = [figures[0], figures.at(-1)];
      if (first === undefined || last === undefined) return [];
      const minutes = (last.at - first.at) / 60_000;
      if (minutes < minMinutes) return [];
      const late = figures.filter(({ at }) => at >= first.at + (last.at - first.at) / 3);
      const sizes = late.map(({ rss }) => rss);
      return [
        `memory of ${nameOf(last)} over ${minutes.toFixed(1)} minutes; its last two thirds: ` +
          `RSS ${mebibytes(Math.min(...sizes))} to ${mebibytes(Math.max(...sizes))} MiB, ${slopeOf(late, ({ rss }) => rss)}; ` +
          `heap after a collection ${slopeOf(late, ({ afterCollection }) => afterCollection)}; ` +
          `external ${slopeOf(late, ({ external }) => external)}`,
      ];
    });
  }
}

function nameOf({ role, pid }: MemoryFigures): string {
  return `${role} (${pid})`;
}

function mebibytes(bytes: number): string {
  return (bytes / mebibyte).toFixed(0);
}

/** MiB a minute of the line that fits best by least squares, with its standard error, and the mean. */
function slopeOf(figures: readonly MemoryFigures[], of: (one: MemoryFigures) => number | undefined): string {
  const points = figures.flatMap((one) => {
    const bytes = of(one);
    return bytes === undefined ? [] : [{ x: one.at / 60_000, y: bytes / mebibyte }];
  });
  if (points.length < 3) return `told ${points.length} times`;
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [middle, level] = [mean(points.map(({ x }) => x)), mean(points.map(({ y }) => y))];
  const spread = points.reduce((sum, { x }) => sum + (x - middle) ** 2, 0);
  const slope = points.reduce((sum, { x, y }) => sum + (x - middle) * (y - level), 0) / spread;
  const rest = points.reduce((sum, { x, y }) => sum + (y - level - slope * (x - middle)) ** 2, 0);
  const error = Math.sqrt(rest / (points.length - 2) / spread);
  return `${slope.toFixed(2)} ± ${error.toFixed(2)} MiB a minute around ${level.toFixed(0)} MiB`;
}
