import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolder } from '../core/package-folder.ts';

/** One change of a document of the demo shop, in the form in which a real shop would report it. */
export interface DemoChange {
  op: 'insert' | 'update' | 'replace' | 'delete';
  entity: string;
  entityId: string;
  /** Milliseconds since 1970. */
  at: number;
  actor: string;
  name?: string;
  schemaVersion?: string;
  related: readonly { entity: string; entityId: string }[];
  before?: unknown;
  after?: unknown;
}

/** The shop in the package. It is invented: its people, too. */
interface ShopFile {
  readonly claimType: object;
  readonly types: Readonly<Record<string, DescribedType>>;
  /** The changes of each day, in the order of time. */
  readonly days: readonly (readonly FiledChange[])[];
}

/** What an entry says of a document of this type besides its content. */
export interface DescribedType {
  readonly schemaVersion?: string;
  /** A text in which `{path}` stands for a value of the document. */
  readonly name?: string;
  /** The path to the id of each related document, by its entity type. */
  readonly related?: Readonly<Record<string, string>>;
}

/** The content is the whole document of an insert, and the fields that an edit writes; a deletion has none. */
type FiledChange = readonly [
  millisecondOfDay: number,
  actor: string,
  op: DemoChange['op'],
  entity: string,
  entityId: string,
  content?: object,
];

export const dayInMilliseconds = 86_400_000;

/** The file's last day is a Saturday; its first one is a Monday. */
export const lastWeekday = 6;

/** The shop with its last day at this one (days since 1970). */
export function readShop(lastDay: number): ShopFile {
  const text = readFileSync(join(packageFolder(), 'demo', 'shop.json'), 'utf8');
  // The only dates in the documents: in the file they are days after its last one.
  return JSON.parse(text, (field, value) =>
    field === 'validUntil' ? new Date((lastDay + value) * dayInMilliseconds).toISOString().slice(0, 10) : value,
  );
}
