import type { Steps } from '@annals/client/json';

/** Lines of a step. */
const stepSize = 2_000;

/** The offset of each line of a text. A line longer than `maxLength` continues on the next one. */
export function* lineStarts(text: string, maxLength: number): Steps<number[]> {
  const starts = [0];
  let lineEnd = text.indexOf('\n');
  for (let start = 0; ; ) {
    if (lineEnd === -1) lineEnd = text.length;
    start = lineEnd - start > maxLength ? cutBetween(text, start + maxLength) : lineEnd + 1;
    if (start > lineEnd) lineEnd = text.indexOf('\n', start);
    if (start > text.length) return starts;
    starts.push(start);
    if (starts.length % stepSize === 0) yield;
  }
}

/** A character of two units stays whole. */
function cutBetween(text: string, place: number): number {
  const unit = text.charCodeAt(place - 1);
  return unit >= 0xd800 && unit < 0xdc00 ? place - 1 : place;
}

/** A line without its end. */
export function lineOf(text: string, starts: readonly number[], index: number): string {
  const line = text.slice(starts[index], starts[index + 1] ?? text.length);
  return line.endsWith('\n') ? line.slice(0, -1) : line;
}
