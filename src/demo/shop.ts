import type { DemoChange } from './demo-change.ts';
import { type Documents, descriptions, type Entity } from './documents.ts';
import type { Random } from './random.ts';
import { isOfficeHour } from './rhythm.ts';

/** How a document is changed: the fields that get another value, or a function that edits a copy of it. */
type Edit<Document> = Partial<Document> | ((draft: Document) => void);

type Store = { readonly [E in Entity]: Map<string, Documents[E]> };

/**
 * The shop's documents as they stand, and the changes that brought them there. Every change is made through it, so
 * that each `before` is the last state the document had. Documents, once stored, are never modified in place.
 */
export class Shop {
  readonly random: Random;
  readonly #documents = emptyStore();
  readonly #deleted = emptyStore();
  readonly #lastChange = new Map<string, number>();
  readonly #numbers = new Map<string, number>();
  #pending: DemoChange[] = [];
  #now = Number.NEGATIVE_INFINITY;

  constructor(random: Random) {
    this.random = random;
  }

  /** Milliseconds since 1970 at which the next change happens. */
  get now(): number {
    return this.#now;
  }

  get isStaffed(): boolean {
    return isOfficeHour(this.#now);
  }

  /** Moves on to `time`; the shop's clock never goes back. */
  proceedTo(time: number): void {
    this.#now = Math.max(this.#now, time);
  }

  /** The changes made since the last call, oldest first. */
  takeChanges(): DemoChange[] {
    const changes = this.#pending;
    this.#pending = [];
    return changes;
  }

  /** The next number of a series, for ids such as order numbers. */
  nextNumber(series: string, first: number): number {
    const number = this.#numbers.get(series) ?? first;
    this.#numbers.set(series, number + 1);
    return number;
  }

  ids(entity: Entity): string[] {
    return [...this.#documents[entity].keys()];
  }

  /** The ids of the documents that fulfil the condition, oldest document first. */
  idsWhere<E extends Entity>(entity: E, condition: (document: Documents[E], id: string) => boolean): string[] {
    const found: string[] = [];
    for (const [id, document] of this.#documents[entity]) if (condition(document, id)) found.push(id);
    return found;
  }

  find<E extends Entity>(entity: E, id: string): Documents[E] | undefined {
    return this.#documents[entity].get(id);
  }

  get<E extends Entity>(entity: E, id: string): Documents[E] {
    const document = this.find(entity, id);
    if (document === undefined) throw new Error(`the shop has no ${entity} ${id}`);
    return document;
  }

  /** The deleted documents of a kind as they last were, by id, for those that come back. */
  deleted<E extends Entity>(entity: E): [id: string, document: Documents[E]][] {
    return [...this.#deleted[entity]];
  }

  /** How long ago the document was last changed, in milliseconds. */
  restingTime(entity: Entity, id: string): number {
    return this.#now - (this.#lastChange.get(`${entity} ${id}`) ?? this.#now);
  }

  insert<E extends Entity>(entity: E, id: string, actor: string, document: Documents[E]): void {
    if (this.#documents[entity].has(id)) throw new Error(`the shop has ${entity} ${id} already`);
    this.#documents[entity].set(id, document);
    this.#deleted[entity].delete(id);
    this.#record('insert', entity, id, actor, document, { after: document });
  }

  /** An update whose edit changes nothing is no change and leaves no trace. */
  update<E extends Entity>(entity: E, id: string, actor: string, edit: Edit<Documents[E]>): void {
    this.#edit('update', entity, id, actor, edit);
  }

  /** Like update, but reported as the whole document having been written anew. */
  replace<E extends Entity>(entity: E, id: string, actor: string, edit: Edit<Documents[E]>): void {
    this.#edit('replace', entity, id, actor, edit);
  }

  delete<E extends Entity>(entity: E, id: string, actor: string): void {
    const before = this.get(entity, id);
    this.#documents[entity].delete(id);
    this.#deleted[entity].set(id, before);
    this.#record('delete', entity, id, actor, before, { before });
  }

  #edit<E extends Entity>(
    op: 'update' | 'replace',
    entity: E,
    id: string,
    actor: string,
    edit: Edit<Documents[E]>,
  ): void {
    const before = this.get(entity, id);
    const after = structuredClone(before);
    if (typeof edit === 'function') edit(after);
    else Object.assign(after, edit);
    if (JSON.stringify(before) === JSON.stringify(after)) return;
    this.#documents[entity].set(id, after);
    this.#record(op, entity, id, actor, after, { before, after });
  }

  #record<E extends Entity>(
    op: DemoChange['op'],
    entity: E,
    entityId: string,
    actor: string,
    document: Documents[E],
    states: { before?: Documents[E]; after?: Documents[E] },
  ): void {
    const { schemaVersion, name, related } = descriptions[entity];
    this.#pending.push({
      op,
      entity,
      entityId,
      at: this.#now,
      actor,
      ...(name === undefined ? {} : { name: name(document, entityId) }),
      ...(schemaVersion === undefined ? {} : { schemaVersion }),
      related: related?.(document) ?? [],
      ...states,
    });
    this.#lastChange.set(`${entity} ${entityId}`, this.#now);
    // The changes of one action are some milliseconds apart, so that their entries have an order.
    this.#now += this.random.integer(3, 60);
  }
}

function emptyStore(): Store {
  return {
    site: new Map(),
    product: new Map(),
    customer: new Map(),
    company: new Map(),
    order: new Map(),
    quote: new Map(),
    coupon: new Map(),
    segment: new Map(),
    group: new Map(),
    'group-assignment': new Map(),
    WARRANTY_CLAIM: new Map(),
  };
}
