import type { BrowserContextOptions, Page } from 'playwright-core';

/** A picture of one view of the console. */
export interface Picture {
  /** That of its file, without the ending. */
  readonly name: string;
  /** Below the address of the console. */
  readonly address: string;
  readonly options?: BrowserContextOptions;
  /** Waits for what the picture shows, after what has to be done for it. */
  readonly ready: (page: Page) => Promise<void>;
}

/** Waits until the first element of a selector is there. */
export function shows(selector: string): Picture['ready'] {
  return async (page) => await page.locator(selector).first().waitFor();
}
