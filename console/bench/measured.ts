import type { CDPSession, Page } from 'playwright-core';

export interface Figure {
  readonly what: string;
  readonly milliseconds: number;
  readonly bytes: number;
  /** Milliseconds; the browser notes tasks from 50 on. */
  readonly maxTask: number;
  /** Milliseconds of processor time of the page's thread. */
  readonly pageTime: number;
  /** The same of this process: the service, and what drives the browser. */
  readonly ownTime: number;
}

/** A page that is signed in, and what became of it since the last step. */
export class Measured {
  readonly page: Page;
  readonly figures: Figure[] = [];
  #bytes = 0;
  #session: Promise<CDPSession> | undefined;

  constructor(page: Page) {
    this.page = page;
    page.on('requestfinished', async (request) => {
      const { responseBodySize, responseHeadersSize } = await request.sizes();
      this.#bytes += responseBodySize + responseHeadersSize;
    });
  }

  async step(what: string, work: (page: Page) => Promise<void>): Promise<void> {
    this.#bytes = 0;
    await this.page.evaluate(() => globalThis.longTasks?.splice(0));
    const pageBefore = await this.#pageTime();
    const ownBefore = process.cpuUsage();
    const begun = performance.now();
    await work(this.page);
    const milliseconds = performance.now() - begun;
    await this.page.waitForLoadState('networkidle');
    const maxTask = await this.page.evaluate(() => Math.max(0, ...(globalThis.longTasks ?? [])));
    const own = process.cpuUsage(ownBefore);
    const pageAfter = await this.#pageTime();
    this.figures.push({
      what,
      milliseconds,
      bytes: this.#bytes,
      maxTask,
      // A page at another address may have a process of its own, which counts from 0.
      pageTime: pageAfter < pageBefore ? pageAfter : pageAfter - pageBefore,
      ownTime: (own.user + own.system) / 1_000,
    });
  }

  async #pageTime(): Promise<number> {
    this.#session ??= this.page.context().newCDPSession(this.page);
    const session = await this.#session;
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const { metrics } = await session.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1_000;
  }
}

declare global {
  var longTasks: number[] | undefined;
}
