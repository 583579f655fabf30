import { setFlagsFromString } from 'node:v8';

/**
 * Percent that the heap grows by, at most, between two full collections; 0: V8's own choice, up to 300.
 */
const maxGrowth = 50;
/** Milliseconds after the last large body, so that a series of them changes the flag once. */
const calmAfter = 10_000;

let works = 0;
let calm: NodeJS.Timeout | undefined;

/**
 * Keeps the heap small until the returned function is called; idempotent. The values of a large body live until its
 * request is answered, which is long enough for V8 to keep them until its next full collection: without the cap they
 * were most of the memory (bench/isolation, attacks 3 and 5). More collections cost other work up to a fifth of its
 * processor time, so the cap holds only while there is such a body.
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
