import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** What the page has searched for inside of values. */
const markedTexts = signal<readonly string[]>([]);

export function hasMarks(): boolean {
  return markedTexts.value.length > 0;
}

/** Where the first of the texts that are marked stands in a text; -1 where none does. */
export function placeOfMark(text: string): number {
  const places = markedTexts.value.map((marked) => text.indexOf(marked)).filter((place) => place >= 0);
  return places.length === 0 ? -1 : Math.min(...places);
}

/** The values in lists and in opened changes. */
const valuesShown = '.entry-paths, .value-side > :last-child';

/** Ranges that are marked at once. */
const maxMarks = 1_000;

/** Marks texts in the values of the page, as they come. A browser without highlights shows no marks. */
export function useMarks(texts: readonly string[]): void {
  const key = JSON.stringify(texts);
  useEffect(() => {
    if (texts.length === 0) return;
    markedTexts.value = texts;
    let planned: number | undefined;
    const mark = () => {
      planned = undefined;
      if ('highlights' in CSS) CSS.highlights.set('found', new Highlight(...rangesOf(texts)));
    };
    const watch = new MutationObserver(() => {
      planned ??= requestAnimationFrame(mark);
    });
    watch.observe(document.body, { childList: true, subtree: true, characterData: true });
    mark();
    return () => {
      watch.disconnect();
      if (planned !== undefined) cancelAnimationFrame(planned);
      if ('highlights' in CSS) CSS.highlights.delete('found');
      markedTexts.value = [];
    };
  }, [key]);
}

function rangesOf(texts: readonly string[]): Range[] {
  const ranges: Range[] = [];
  for (const element of document.querySelectorAll(valuesShown)) {
    const nodes = textNodesOf(element);
    const whole = nodes.map(({ data }) => data).join('');
    for (const text of texts) {
      for (let at = whole.indexOf(text); at >= 0; at = whole.indexOf(text, at + text.length)) {
        if (ranges.length === maxMarks) return ranges;
        ranges.push(rangeOf(nodes, at, at + text.length));
      }
    }
  }
  return ranges;
}

function textNodesOf(element: Element): Text[] {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const nodes: Text[] = [];
  while (walker.nextNode()) if (walker.currentNode instanceof Text) nodes.push(walker.currentNode);
  return nodes;
}

/** The range between two places in the joined text of some nodes. */
function rangeOf(nodes: readonly Text[], from: number, until: number): Range {
  const range = new Range();
  let begin = 0;
  for (const node of nodes) {
    const end = begin + node.length;
    if (from >= begin && from < end) range.setStart(node, from - begin);
    if (until > begin && until <= end) range.setEnd(node, until - begin);
    begin = end;
  }
  return range;
}
