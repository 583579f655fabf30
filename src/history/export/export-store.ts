import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { ExportFormat, ExportSnapshot } from '../../core/export-history.ts';
import type { ShownActors } from '../../core/written-restriction.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { correlationColumn, type Place, recordedByColumn } from '../entries/entry-store.ts';
import { unseenParts } from '../entries/show-entries.ts';
import type { Search } from '../search/search.ts';
import { found, runSearch } from '../search/search-store.ts';

interface Lines {
  text: string;
  entries: number;
  last: Place;
}

/** The fields of a CSV line (RFC 4180), in this order. */
const csvColumns = ['at', 'type', 'entity', 'entityId', 'name', 'schemaVersion', 'actor', 'related', 'paths'] as const;
/** After those of a job with context. Empty for a reader who does not see them. */
const whoColumns = ['actorId', 'onBehalfOfName', 'onBehalfOfId', 'correlationId'] as const;

export function csvHead(withContext = false): string {
  return `${[...csvColumns, ...(withContext ? ['context', 'recordedBy'] : []), ...whoColumns].join(',')}\r\n`;
}

const at = sql`to_char(timestamp 'epoch' + e.at * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const nothing = sql`''`;

const correlation = sql.raw(correlationColumn);
const ndjsonWho = sql`(coalesce(',"actorId":' || to_json(a.actor_id)::text, '')
    || case when coalesce(a.behalf_name, a.behalf_id) is null then ''
         else ',"onBehalfOf":' || json_strip_nulls(json_build_object('name', a.behalf_name, 'id', a.behalf_id))::text end)`;
const csvWho = sql.join(
  [sql`a.actor_id`, sql`a.behalf_name`, sql`a.behalf_id`].map(
    (column) => sql`',' || coalesce(csv_field(${column}), '')`,
  ),
  sql` || `,
);
const ndjsonCorrelation = sql`coalesce(',"correlationId":' || to_json(${correlation})::text, '')`;
const csvCorrelation = sql`',' || coalesce(csv_field(${correlation}), '')`;

interface LineParts {
  readonly before: RawBuilder<unknown>;
  readonly paths: RawBuilder<unknown>;
  readonly after: RawBuilder<unknown>;
  /** Empty where the reader does not see it. */
  readonly correlation: RawBuilder<unknown>;
  readonly end: RawBuilder<unknown>;
}

/** The list of erased parts without those that the reader does not see; null for none. */
const erasedParts = (unseen: readonly string[]) =>
  unseen.length === 0
    ? sql`e.erased`
    : sql`(select '[' || string_agg(to_json(part)::text, ',' order by place) || ']'
        from json_array_elements_text(e.erased::json) with ordinality as of (part, place)
        where part <> all (${unseen}::text[]))`;

// The same texts as the endpoint's. The database writes the lines, so that this work blocks no other request.
const ndjsonLine = (circumstances: RawBuilder<unknown>, actors: ShownActors, unseen: readonly string[]): LineParts => ({
  before: sql`
  '{"at":"' || ${at} || '","type":"' || k.type || '","entity":' || to_json(k.entity)::text
    || ',"entityId":' || to_json(e.entity_id)::text || coalesce(',"name":' || to_json(e.name)::text, '') || ',"paths":'`,
  paths: sql`e.paths`,
  after: sql`coalesce(',"schemaVersion":' || to_json(e.schema_version)::text, '')
    || ${actors ? sql`',"actor":' || to_json(a.name)::text` : nothing}${actors === 'all' ? sql` || ${ndjsonWho}` : sql``}`,
  correlation: actors === 'all' ? ndjsonCorrelation : nothing,
  end: sql`',"related":' || coalesce(e.related, '[]') || ${circumstances}
    || coalesce(',"erased":' || ${erasedParts(unseen)}, '') || E'}\n'`,
});

const csvLine = (circumstances: RawBuilder<unknown>, actors: ShownActors): LineParts => ({
  before: sql`
  csv_field(${at}) || ',' || csv_field(k.type) || ',' || csv_field(k.entity) || ',' || csv_field(e.entity_id) || ','
    || coalesce(csv_field(e.name), '') || ',' || coalesce(csv_field(e.schema_version), '') || ',' || ${actors ? sql`csv_field(a.name)` : nothing}
    || ',' || csv_field(coalesce(e.related, '[]')) || ','`,
  paths: sql`csv_field(e.paths)`,
  after: sql`${circumstances} || ${actors === 'all' ? csvWho : sql`',,,'`}`,
  correlation: actors === 'all' ? csvCorrelation : sql`','`,
  end: sql`E'\r\n'`,
});

const wholeLine = ({ before, paths, after, correlation: group, end }: LineParts) =>
  sql`${before} || ${paths} || ${after} || ${group} || ${end}`;
/** As sealLines takes it. */
const lineInParts = ({ before, after, end }: LineParts, shown: boolean) =>
  sql`'[' || to_json(${before})::text || ',' || e.paths || ',' || to_json(${after})::text || ','
    || E'\x01' || ${shown ? sql`coalesce(to_json(${correlation})::text, '')` : nothing} || E'\x01,'
    || to_json((${end})::text)::text || E']\n'`;

const recordedBy = sql.raw(recordedByColumn);
const ndjsonCircumstances = sql`coalesce(',"context":' || e.context, '') || coalesce(',"recordedBy":' || ${recordedBy}, '')`;
const csvCircumstances = sql`',' || coalesce(csv_field(e.context), '') || ',' || coalesce(csv_field(${recordedBy}), '')`;

interface LineOptions {
  format: ExportFormat;
  withContext: boolean | undefined;
  inParts: boolean;
  /** Of a restricted reader; otherwise undefined: everything. */
  actors: ShownActors | undefined;
  /** Continues after the place that an earlier attempt reached. */
  resume?: (ExportSnapshot & { after: Place }) | undefined;
}

/** Opens the cursor of an export in a repeatable read transaction. Entries come newest first. */
export async function openLines(
  transaction: DatabaseTransaction,
  search: Search,
  { format, withContext = false, inParts, actors: ofRestricted, resume }: LineOptions,
): Promise<void> {
  // The export needs lines as the database finds them, not after it has found and sorted all of them.
  await sql`set local enable_sort = off`.execute(transaction);
  await sql`set local jit = off`.execute(transaction);
  const seen: RawBuilder<SqlBool> =
    resume === undefined
      ? sql`true`
      : sql`(e.at, e.sequence) < (${resume.after.at}::bigint, ${resume.after.sequence}::bigint)
          and (e.recorded is null or e.recorded_on is distinct from ${resume.placement}::xid8
            or pg_visible_in_snapshot(e.recorded, ${resume.snapshot}::pg_snapshot))`;
  const actors = ofRestricted ?? 'all';
  const unseen = ofRestricted === undefined ? [] : unseenParts(ofRestricted);
  const parts =
    format === 'CSV'
      ? csvLine(withContext ? csvCircumstances : nothing, actors)
      : ndjsonLine(withContext ? ndjsonCircumstances : nothing, actors, unseen);
  const declaration = sql`
    declare export_lines no scroll cursor for
      select ${inParts ? lineInParts(parts, actors === 'all') : wholeLine(parts)}, e.at, e.sequence
        from (select e.* ${found({ ...search, condition: sql`${search.condition} and ${seen}` })}) as e
        join change_kind k on k.tenant = e.tenant and k.kind = e.kind
        join change_actor a on a.tenant = e.tenant and a.actor = e.actor
        order by e.at desc, e.sequence desc`;
  await runSearch(transaction, search, declaration);
}

/** The next lines, about `bytes` bytes of them; undefined if no lines are left. */
export async function takeLines(transaction: DatabaseTransaction, bytes: number): Promise<Lines | undefined> {
  const { rows } = await sql<{ lines: string; entries: number; last_at: number; last_sequence: number }>`
    select lines, entries, last_at, last_sequence from change_export_take('export_lines', ${bytes})`.execute(
    transaction,
  );
  const [row] = rows;
  return row && { text: row.lines, entries: row.entries, last: { at: row.last_at, sequence: row.last_sequence } };
}

/** The transaction's snapshot on the server that has the tenant's entries, and where that is. */
export async function readExportSnapshot(
  transaction: DatabaseTransaction,
  tenant: string,
): Promise<Pick<ExportSnapshot, 'snapshot' | 'placement'>> {
  // The rows of the tenant direct a cluster to the server.
  const { rows } = await sql<{ snapshot: string; placement: string | null }>`
    select pg_current_snapshot()::text as snapshot, change_placement(${tenant})::text as placement
      from (select count(*) from tenant t where t.tenant = ${tenant}) as there`.execute(transaction);
  const [row] = rows;
  if (row === undefined) throw new Error('the database returned no snapshot');
  return row;
}
