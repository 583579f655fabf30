import type { Row } from './rows.ts';

export interface Entry {
  at: string;
  type: 'create' | 'update' | 'delete';
  entity: string;
  entityId: string;
  paths: Record<string, { before?: unknown; after?: unknown }>;
}

/** Asks the operation that lists the history. Returns the entries that match, oldest first. */
export async function entriesOf(baseUrl: string, token: string, q: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let page = 1, pages = 1; page <= pages; page++) {
    const url = new URL(`${baseUrl}/changelog/acme/changelogs`);
    url.search = new URLSearchParams({ q, size: '100', page: String(page) }).toString();
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    const { items, totalPages } = (await response.json()) as { items: Entry[]; totalPages: number };
    entries.push(...items);
    pages = totalPages;
  }
  return entries.reverse();
}

/** The states of each document, by its id: a row, or null where it was deleted. Each stands there once as long as it stays. */
export class States {
  readonly #states = new Map<string, (Row | null)[]>();

  add(id: string, state: Row | null): void {
    const states = this.#states.get(id) ?? [];
    const last = states.at(-1);
    if (last !== undefined && text(last) === text(state)) return;
    if (last === undefined && state === null) return;
    this.#states.set(id, [...states, state]);
  }

  last(id: string): Row | null {
    return this.#states.get(id)?.at(-1) ?? null;
  }

  get ids(): string[] {
    return [...this.#states.keys()].sort();
  }

  of(id: string): string[] {
    return (this.#states.get(id) ?? []).map(text);
  }

  /** Every state after another one of the same document, counted over all documents. */
  get count(): number {
    return [...this.#states.values()].reduce((sum, states) => sum + states.length, 0);
  }

  get alive(): string[] {
    return [...this.#states.values()].flatMap((states) => (states.at(-1) ? [text(states.at(-1) ?? null)] : [])).sort();
  }
}

/** What the entries of an entity tell about its documents. */
export function statesOf(entries: readonly Entry[]): States {
  const states = new States();
  for (const { type, entityId, paths } of entries) {
    if (type === 'delete') {
      states.add(entityId, null);
      continue;
    }
    const row: Row = structuredClone(states.last(entityId) ?? {});
    for (const [path, { after }] of Object.entries(paths)) write(row, path.split('.'), after);
    states.add(entityId, row);
  }
  return states;
}

function write(row: Row, [key = '', ...inside]: string[], value: unknown): void {
  if (inside.length > 0) {
    const member = row[key];
    const nested = typeof member === 'object' && member !== null ? (member as Row) : {};
    row[key] = nested;
    write(nested, inside, value);
  } else if (value === undefined) delete row[key];
  else row[key] = value;
}

/** Equal for equal rows, whatever the order of their keys. Times are compared as moments: trailing zeros do not matter. */
export function text(value: unknown): string {
  return JSON.stringify(value, (_key, member) => {
    if (typeof member === 'string' && /^\d{4}-\d\d-\d\dT.*Z$/.test(member)) return new Date(member).toISOString();
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member;
    return Object.fromEntries(Object.entries(member).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}
