import { type Static, Type } from 'typebox';
import { MetadataInput, shownMetadata } from '../../http/body-members.ts';
import { chosenId, chosenIdInPath, chosenName, TenantName } from '../../http/chosen-id.ts';
import { listItem } from '../../http/openapi/components.ts';
import { parseInstant } from '../../query/instant.ts';

const maxDays = 36_500;

/** What a range must be, for messages. */
const rangeForms = `today, yesterday, all, P1D to P${maxDays}D, or two times such as 2026-06-01T00:00:00Z/2026-07-01T00:00:00Z, the second may be ..`;

/** What every range looks like. */
const rangePattern = '^(?:today|yesterday|all|P([1-9][0-9]{0,4})D|([^/]+)/([^/]+))$';

/**
 * The fault of a view's range, or undefined. A range is a day by the reader's clock (`today`, `yesterday`), a number of
 * days until now (ISO 8601: `P7D`), two moments (from the first on and before the second, which may be `..`), or `all`.
 */
export function faultOfRange(text: string): string | undefined {
  const parts = new RegExp(rangePattern).exec(text);
  const [days, first, second] = parts?.slice(1) ?? [];
  if (parts === null || Number(days) > maxDays) return `must be ${rangeForms}`;
  if (first === undefined || second === undefined) return undefined;
  const from = parseInstant(first);
  const before = second === '..' ? undefined : parseInstant(second);
  if (typeof from === 'string') return `must begin with ${from}`;
  if (typeof before === 'string') return `must end with .. or ${before}`;
  return before !== undefined && before.millisecond <= from.millisecond ? 'must end after it begins' : undefined;
}

export const maxViews = 200;

/** The members of an entry that a list can show. */
const columns = ['at', 'type', 'entity', 'entityId', 'name', 'actor', 'paths', 'related', 'schemaVersion'] as const;

export const ViewsPath = Type.Object({ tenant: TenantName });
export const ViewPath = Type.Object({
  tenant: TenantName,
  id: chosenIdInPath('ViewId', 'price-changes'),
});

const q = Type.String({
  description: 'A query of the change history, without its time where `range` has it. It must be valid.',
});

const range = Type.String({
  pattern: rangePattern,
  'x-must': `be ${rangeForms}`,
  description:
    'The time that the query looks at: `today` or `yesterday` by the clock of the reader, the last days (`P7D`, at most `P36500D`), ' +
    '`all`, or two times (`2026-06-01T00:00:00Z/2026-07-01T00:00:00Z`: from the first, before the second; `..` as the second: ' +
    'without an end). Default: `P30D`.',
});

const shownColumns = Type.Array(Type.Enum(columns, { type: 'string' }), {
  minItems: 1,
  uniqueItems: true,
  maxItems: columns.length,
  description: 'The members of an entry to show, in this order. Default: the program that shows the view decides.',
});

const position = Type.Number({
  minimum: -1e9,
  maximum: 1e9,
  description:
    'The place of the view among the others: the smallest number stands first, equal ones in the order of their ids. ' +
    'Default: after all others; a PUT without it keeps the place.',
});

const example = { name: 'Price changes', q: 'entity:product path:price', range: 'P7D', position: 1 };

export const ViewBody = Type.Object(
  {
    id: chosenId,
    name: chosenName,
    q,
    range: Type.Optional(range),
    columns: Type.Optional(shownColumns),
    position: Type.Optional(position),
    metadata: Type.Optional(MetadataInput),
  },
  { $id: 'SavedViewInput', additionalProperties: false, examples: [{ id: 'price-changes', ...example }] },
);
export type ViewBody = Static<typeof ViewBody>;

const Metadata = Type.Object(shownMetadata, { $id: 'SavedViewMetadata' });
const metadata = { version: 1, createdAt: '2026-09-01T09:30:00.000Z', modifiedAt: '2026-09-01T09:30:00.000Z' };

export const SavedView = Type.Object(
  { id: Type.String(), name: chosenName, q, range, columns: Type.Optional(shownColumns), position, metadata: Metadata },
  { $id: 'SavedView', examples: [{ id: 'price-changes', ...example, metadata }] },
);
export type SavedView = Static<typeof SavedView>;

export const SavedViewItem = listItem('SavedViewItem', SavedView);
export const ViewCreated = Type.Object({ id: Type.String() }, { $id: 'SavedViewCreated' });
