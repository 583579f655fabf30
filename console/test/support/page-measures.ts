import type { Page } from 'playwright-core';

/** The pixels that a page is wider than its window. */
export async function sidewaysRoom(page: Page): Promise<number> {
  return await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/** Waits until nothing is being loaded, facets too: they come after the list and change what Tab reaches. A page that follows the history is never without a request. */
export async function waitForQuiet(page: Page): Promise<void> {
  await page.locator('.loading-line.active, .skeleton, .facet:not(:has(li, p))').first().waitFor({ state: 'detached' });
}

/** The elements of a page that move, or would with their next change: those with an animation or a transition longer than 0. */
export async function findMotion(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const lasts = (durations: string) => durations.split(',').some((duration) => Number.parseFloat(duration) > 0);
    const moves = (element: Element, part?: string) => {
      const { animationName, animationDuration, transitionDuration } = getComputedStyle(element, part);
      return (animationName !== 'none' && lasts(animationDuration)) || lasts(transitionDuration);
    };
    return [...document.querySelectorAll('*')]
      .filter((element) => [undefined, '::before', '::after'].some((part) => moves(element, part)))
      .map(({ outerHTML }) => outerHTML.slice(0, 120));
  });
}

/** The animations of a page's styles that a reader who wants no motion would get, whether something has them now or not. */
export async function findUnaskedAnimations(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const animated = (rules: CSSRuleList): string[] =>
      [...rules].flatMap((rule) => {
        if (rule instanceof CSSMediaRule) return matchMedia(rule.conditionText).matches ? animated(rule.cssRules) : [];
        return rule instanceof CSSStyleRule && !['', 'none'].includes(rule.style.animationName) ? [rule.cssText] : [];
      });
    return [...document.styleSheets].flatMap(({ cssRules }) => animated(cssRules));
  });
}

/** How far a page's content moved while it was loaded. */
export interface LayoutShift {
  /** The sum of all shifts; Cumulative Layout Shift, which counts the worst window of time, is at most this. */
  readonly sum: number;
  /** What moved, the largest shift first. */
  readonly causes: readonly string[];
}

/** The attributes of `layout-shift` entries that TypeScript does not know. */
interface ShiftEntry extends PerformanceEntry {
  readonly value: number;
  readonly sources: readonly {
    readonly node: Node | null;
    readonly previousRect: DOMRect;
    readonly currentRect: DOMRect;
  }[];
}

/** The layout shift since the document was loaded. */
export async function readLayoutShift(page: Page): Promise<LayoutShift> {
  return await page.evaluate(async () => {
    // Shifts are reported after the frame that shows them.
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    const entries = await new Promise<ShiftEntry[]>((resolve) => {
      const observer = new PerformanceObserver((list) => resolve(list.getEntries() as ShiftEntry[]));
      observer.observe({ type: 'layout-shift', buffered: true });
      // No entry, no call.
      requestAnimationFrame(() => setTimeout(() => resolve([]), 50));
    });
    const causes = entries
      .toSorted((a, b) => b.value - a.value)
      .map(({ value, sources }) => {
        const moved = sources.map(({ node, previousRect: from, currentRect: to }) => {
          const element = node instanceof Element ? node : node?.parentElement;
          return `${element?.tagName.toLowerCase()}.${element?.className} ${from.y}+${from.height} → ${to.y}+${to.height}`;
        });
        return `${value.toFixed(3)}: ${moved.join('; ')}`;
      });
    return { sum: entries.reduce((sum, { value }) => sum + value, 0), causes };
  });
}

/** One event of Chromium's trace, in microseconds. `tdur` is the processor time of its thread. */
interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

/**
 * The processor time of the longest task of the page's thread while `work` runs, in milliseconds. Meanwhile the page answers no
 * key. The clock is that of the thread, so other work of the machine does not count.
 */
export async function maxTaskTime(page: Page, work: () => Promise<void>): Promise<number> {
  const browser = page.context().browser();
  if (browser === null) throw new Error('the page has no browser');
  await browser.startTracing(page, { categories: ['toplevel'] });
  let trace: Buffer;
  try {
    await work();
  } finally {
    trace = await browser.stopTracing();
  }
  const { traceEvents }: { traceEvents: TraceEvent[] } = JSON.parse(trace.toString());
  const threads = traceEvents.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain');
  const isOfPage = (event: TraceEvent) => threads.some(({ pid, tid }) => pid === event.pid && tid === event.tid);
  const tasks = traceEvents.filter((event) => event.name.endsWith('RunTask') && isOfPage(event));
  if (tasks.length === 0) throw new Error('the trace has no task of the page');
  return Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1_000;
}
