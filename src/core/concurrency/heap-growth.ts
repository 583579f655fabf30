import { setFlagsFromString } from 'node:v8';

/** Percent that the heap grows by, at most, before the runtime collects all garbage; 0: the runtime's own choice, up to 300. */
const maxGrowth = 50;
/** Milliseconds after the last long work, so that not each one changes the setting. */
const calmAfter = 10_000;

let works = 0;
let calm: NodeJS.Timeout | undefined;

/**
 * Keeps the heap small until the returned function is called; idempotent. The texts of a long answer live until a client
 * has taken them, and a large body until its request is answered. That is long enough for the runtime to keep them until
 * the next full garbage collection. With its own choice of when to have one, such garbage was most of the memory. To have
 * it more often costs other work up to a fifth of its processor time, so the setting holds only while there is such work.
 */
export function keepHeapSmall(): () => void {
  if (works === 0 && calm === undefined) setFlagsFromString(`--heap-growing-percent=${maxGrowth}`);
  clearTimeout(calm);
  calm = undefined;
  works += 1;
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    works -= 1;
    if (works > 0) return;
    calm = setTimeout(() => {
      calm = undefined;
      setFlagsFromString('--heap-growing-percent=0');
    }, calmAfter).unref();
  };
}
