import { memoryOf } from './processes.ts';

interface Sample {
  minute: number;
  mebibytes: number;
}

/** The memory of processes over their lives. */
export class MemoryOverTime {
  readonly #began = performance.now();
  readonly #samples = new Map<string, Sample[]>();

  /** Takes a sample of the process. Each process has a series of its own, however often its role changes hands. */
  add(role: string, pid: number): void {
    const mebibytes = memoryOf(pid);
    if (mebibytes === undefined) return;
    const key = `${role} (${pid})`;
    const samples = this.#samples.get(key) ?? [];
    samples.push({ minute: (performance.now() - this.#began) / 60_000, mebibytes });
    this.#samples.set(key, samples);
  }

  /** One line for each process that lived for two minutes or more; the first minute of its life does not count. */
  lines(): string[] {
    return [...this.#samples].flatMap(([key, all]) => {
      const samples = all.filter(({ minute }) => minute >= (all[0]?.minute ?? 0) + 1);
      const [first, last] = [samples[0], samples.at(-1)];
      if (first === undefined || last === undefined || last.minute - first.minute < 1) return [];
      const sizes = samples.map(({ mebibytes }) => mebibytes);
      return [
        `memory of ${key}: ${first.mebibytes.toFixed(0)} MiB after a minute, ${last.mebibytes.toFixed(0)} MiB at the end, ` +
          `${Math.min(...sizes).toFixed(0)} to ${Math.max(...sizes).toFixed(0)}; ` +
          `${slopeOf(samples).toFixed(2)} MiB a minute over ${(last.minute - first.minute).toFixed(1)} minutes`,
      ];
    });
  }
}

/** Of the line that fits best. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [middle, size] = [mean(samples.map(({ minute }) => minute)), mean(samples.map(({ mebibytes }) => mebibytes))];
  const above = samples.reduce((sum, one) => sum + (one.minute - middle) * (one.mebibytes - size), 0);
  return above / samples.reduce((sum, one) => sum + (one.minute - middle) ** 2, 0);
}
