import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolder } from '../core/package-folder.ts';

/** A change of a document of the demo shop, as a real shop would report it. */
export interface DemoChange {
  op: 'insert' | 'update' | 'replace' | 'delete';
  entity: string;
  entityId: string;
  /** Milliseconds since 1970. */
  at: number;
  actor: string;
  actorId?: string;
  onBehalfOf?: Person;
  correlationId?: string;
  context?: object;
  name?: string;
  schemaVersion?: string;
  related: readonly { entity: string; entityId: string }[];
  before?: unknown;
  after?: unknown;
}

interface Person {
  readonly name?: string;
  readonly id: string;
}

/** Somebody who works for the shop. */
export interface Employee {
  readonly id: string;
  /** The network address. */
  readonly address?: string;
  /** Whether the history has their sign-ins: one before their first change of a day. */
  readonly signsIn?: true;
  /** What they export every week. */
  readonly exports?: string;
  /** Whether they change documents of customers on their behalf. */
  readonly supports?: true;
  /** Their name from a day on (counted from 0). */
  readonly later?: { readonly name: string; readonly day: number };
}

/** The shop in the package, which is invented, with its people. */
interface ShopFile {
  readonly claimType: object;
  readonly types: Readonly<Record<string, DescribedType>>;
  /** By the name in `days`. */
  readonly people: Readonly<Record<string, Employee>>;
  /** The changes of each day, in chronological order. */
  readonly days: readonly (readonly FiledChange[])[];
}

/** The name and the relations of a document type. */
export interface DescribedType {
  readonly schemaVersion?: string;
  /** A text in which `{path}` stands for a value of the document. */
  readonly name?: string;
  /** The path to the id of each related document, by its entity type. */
  readonly related?: Readonly<Record<string, string>>;
}

/** The content is the whole document of an insert, or the fields of an edit; a deletion has none. */
export type FiledChange = readonly [
  millisecondOfDay: number,
  actor: string,
  op: DemoChange['op'],
  entity: string,
  entityId: string,
  content?: object,
];

export const dayInMilliseconds = 86_400_000;

/** The file begins on a Monday and ends on a Saturday. */
export const lastWeekday = 6;

/** The shop with its last day moved to this one (days since 1970). */
export function readShop(lastDay: number): ShopFile {
  const text = readFileSync(join(packageFolder(), 'demo', 'shop.json'), 'utf8');
  // The only dates in documents, in the file as days after its last one.
  return JSON.parse(text, (field, value) =>
    field === 'validUntil' ? new Date((lastDay + value) * dayInMilliseconds).toISOString().slice(0, 10) : value,
  );
}
