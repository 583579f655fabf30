/** A page, and the way to the page after it. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** The page after this one; undefined after the last. */
  nextPage(): Promise<Page<Item> | undefined>;
}

/**
 * A list that has not been fetched yet. Awaited it is its first page; in `for await` it is all items, page after page.
 *
 * @example
 * const page = await annals.jobs.list({ pageSize: 10 });
 * for await (const job of annals.jobs.list()) console.log(job.id);
 */
export class Walk<Item, OnePage extends Page<Item>> implements PromiseLike<OnePage>, AsyncIterable<Item> {
  readonly #fetchFirst: () => Promise<OnePage>;
  #first: Promise<OnePage> | undefined;

  /** Nothing is fetched before the list is awaited or iterated. */
  constructor(fetchFirst: () => Promise<OnePage>) {
    this.#fetchFirst = fetchFirst;
  }

  // biome-ignore lint/suspicious/noThenProperty: a list is awaited for its first page.
  then<Result = OnePage, Failure = never>(
    onPage?: ((page: OnePage) => Result | PromiseLike<Result>) | null,
    onError?: ((error: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Result | Failure> {
    return this.#firstPage().then(onPage, onError);
  }

  catch<Failure = never>(onError?: ((error: unknown) => Failure | PromiseLike<Failure>) | null) {
    return this.#firstPage().catch(onError);
  }

  finally(onEnd?: (() => void) | null): Promise<OnePage> {
    return this.#firstPage().finally(onEnd);
  }

  /** All pages, from the first on. */
  async *pages(): AsyncGenerator<Page<Item>, void, undefined> {
    for (let page: Page<Item> | undefined = await this.#firstPage(); page !== undefined; page = await page.nextPage()) {
      yield page;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page.items;
  }

  #firstPage(): Promise<OnePage> {
    this.#first ??= this.#fetchFirst();
    return this.#first;
  }
}
