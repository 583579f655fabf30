import type { Page } from 'playwright-core';

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
