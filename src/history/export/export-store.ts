import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { ExportFormat, ExportProgress, ExportRows, ExportSnapshot } from '../../core/export-history.ts';
import type { ShownActors } from '../../core/written-restriction.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { correlationColumn, recordedByColumn } from '../entries/entry-store.ts';
import { unseenParts } from '../entries/show-entries.ts';
import type { Search } from '../search/search.ts';
import { found, runSearch } from '../search/search-store.ts';

interface Lines {
  text: string;
  entries: number;
  last: ExportProgress['after'];
}

/** The fields of a CSV line (RFC 4180), in this order. */
const csvColumns = ['at', 'type', 'entity', 'entityId', 'name', 'schemaVersion', 'actor', 'related'] as const;
const pathColumns = { change: ['paths'], field: ['pathNumber', 'path', 'before', 'after'] } as const;
/** After those of a job with context. Empty for a reader who does not see them. */
const whoColumns = ['actorId', 'onBehalfOfName', 'onBehalfOfId', 'correlationId'] as const;

const byteOrderMark = '\ufeff';

/** The first line of a CSV file. */
export function csvHead({
  withContext = false,
  rows = 'change',
  bom = false,
}: {
  withContext?: boolean | undefined;
  rows?: ExportRows | undefined;
  bom?: boolean | undefined;
} = {}): string {
  const columns = [
    ...csvColumns,
    ...pathColumns[rows],
    ...(withContext ? ['context', 'recordedBy'] : []),
    ...whoColumns,
  ];
  return `${bom ? byteOrderMark : ''}${columns.join(',')}\r\n`;
}

const at = sql`to_char(timestamp 'epoch' + e.at * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const nothing = sql`''`;
const nothingMore = sql``;

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
  /** As JSON, and as the whole line has them. */
  readonly json: RawBuilder<unknown>;
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
  json: sql`e.paths`,
  paths: sql`e.paths`,
  after: sql`coalesce(',"schemaVersion":' || to_json(e.schema_version)::text, '')
    || ${actors ? sql`',"actor":' || to_json(a.name)::text` : nothing}${actors === 'all' ? sql` || ${ndjsonWho}` : sql``}`,
  correlation: actors === 'all' ? ndjsonCorrelation : nothing,
  end: sql`',"related":' || coalesce(e.related, '[]') || ${circumstances}
    || coalesce(',"erased":' || ${erasedParts(unseen)}, '') || E'}\n'`,
});

/** `ofEntry`: the text that stands in the first row of an entry alone. */
const csvLine = (
  circumstances: RawBuilder<unknown>,
  actors: ShownActors,
  {
    ofEntry,
    json,
    before = nothing,
  }: Pick<LineParts, 'json'> & {
    readonly ofEntry: (text: RawBuilder<unknown>) => RawBuilder<unknown>;
    readonly before?: RawBuilder<unknown>;
  },
): LineParts => ({
  before: sql`
  csv_field(${at}) || ',' || csv_field(k.type) || ',' || csv_field(k.entity) || ',' || csv_field(e.entity_id) || ','
    || coalesce(csv_field(e.name), '') || ',' || coalesce(csv_field(e.schema_version), '') || ',' || ${actors ? sql`csv_field(a.name)` : nothing}
    || ',' || ${ofEntry(sql`csv_field(coalesce(e.related, '[]'))`)} || ',' || ${before}`,
  json,
  paths: sql`csv_field(${json})`,
  after: sql`${circumstances} || ${actors === 'all' ? csvWho : sql`',,,'`}`,
  correlation: actors === 'all' ? csvCorrelation : sql`','`,
  end: sql`E'\r\n'`,
});

/** One row for an entry. */
const changeRow = { ofEntry: (text: RawBuilder<unknown>) => text, json: sql`e.paths` };
/** A row for each path. What an entry has of any length is not repeated, so that a file cannot grow with its square. */
const fieldRow = {
  ofEntry: (text: RawBuilder<unknown>) => sql`case when f.number <= 1 then ${text} else '' end`,
  before: sql`case when f.number > 0 then '"' || f.number || '"' else '' end || ','`,
  json: sql`f.field`,
};

const wholeLine = ({ before, paths, after, correlation: group, end }: LineParts) =>
  sql`${before} || ${paths} || ${after} || ${group} || ${end}`;
/** As hideLines takes it. */
const lineInParts = ({ before, json, after, correlation: group, end }: LineParts) =>
  sql`'[' || to_json(${before})::text || ',' || ${json} || ',' || to_json(${after} || ${group} || ${end})::text || E']\n'`;
/** As sealLines takes it. */
const lineToSeal = ({ before, json, after, end }: LineParts, shown: boolean) =>
  sql`'[' || to_json(${before})::text || ',' || ${json} || ',' || to_json(${after})::text || ','
    || E'\x01' || ${shown ? sql`coalesce(to_json(${correlation})::text, '')` : nothing} || E'\x01,'
    || to_json((${end})::text)::text || E']\n'`;

const recordedBy = sql.raw(recordedByColumn);
const ndjsonCircumstances = sql`coalesce(',"context":' || e.context, '') || coalesce(',"recordedBy":' || ${recordedBy}, '')`;
const csvCircumstances = (ofEntry: (text: RawBuilder<unknown>) => RawBuilder<unknown>) =>
  sql`',' || ${ofEntry(sql`coalesce(csv_field(e.context), '')`)} || ',' || coalesce(csv_field(${recordedBy}), '')`;

interface LineOptions {
  format: ExportFormat;
  rows: ExportRows;
  withContext: boolean | undefined;
  /** What the service does with the lines, in parts: it masks and seals, or writes fields; undefined: nothing. */
  inParts: 'sealed' | 'plain' | undefined;
  /** Of a restricted reader; otherwise undefined: everything. */
  actors: ShownActors | undefined;
  /** Continues after the place that an earlier attempt reached. */
  resume?: ExportProgress | undefined;
}

/** Opens the cursor of an export in a repeatable read transaction. Entries come newest first. */
export async function openLines(
  transaction: DatabaseTransaction,
  search: Search,
  { format, rows, withContext = false, inParts, actors: ofRestricted, resume }: LineOptions,
): Promise<void> {
  // The export needs lines as the database finds them, not after it has found and sorted all of them.
  await sql`set local enable_sort = off`.execute(transaction);
  await sql`set local jit = off`.execute(transaction);
  const seen: RawBuilder<SqlBool> =
    resume === undefined
      ? sql`true`
      : sql`(e.at, e.sequence) ${sql.raw(rows === 'field' ? '<=' : '<')} (${resume.after.at}::bigint, ${resume.after.sequence}::bigint)
          and (e.recorded is null or e.recorded_on is distinct from ${resume.placement}::xid8
            or pg_visible_in_snapshot(e.recorded, ${resume.snapshot}::pg_snapshot))`;
  const actors = ofRestricted ?? 'all';
  const unseen = ofRestricted === undefined ? [] : unseenParts(ofRestricted);
  const row = rows === 'field' ? fieldRow : changeRow;
  const parts =
    format === 'CSV'
      ? csvLine(withContext ? csvCircumstances(row.ofEntry) : nothing, actors, row)
      : ndjsonLine(withContext ? ndjsonCircumstances : nothing, actors, unseen);
  const line =
    inParts === 'sealed'
      ? lineToSeal(parts, actors === 'all')
      : inParts === 'plain'
        ? lineInParts(parts)
        : wholeLine(parts);
  const after = resume?.after;
  const fields =
    rows === 'change'
      ? nothingMore
      : sql`cross join lateral change_fields(e.paths) as f ${
          after === undefined
            ? nothingMore
            : sql`where e.at <> ${after.at}::bigint or e.sequence <> ${after.sequence}::bigint
                or f.number > ${after.path ?? 0}::bigint`
        }`;
  const declaration = sql`
    declare export_lines no scroll cursor for
      select ${line}, e.at, e.sequence, ${rows === 'field' ? sql`f.number` : sql`0::bigint`}
        from (select e.* ${found({ ...search, condition: sql`${search.condition} and ${seen}` })}) as e
        join change_kind k on k.tenant = e.tenant and k.kind = e.kind
        join change_actor a on a.tenant = e.tenant and a.actor = e.actor
        ${fields}
        order by e.at desc, e.sequence desc${rows === 'field' ? sql`, f.number` : nothingMore}`;
  await runSearch(transaction, search, declaration);
}

/** The next lines, about `bytes` bytes of them; undefined if no lines are left. */
export async function takeLines(transaction: DatabaseTransaction, bytes: number): Promise<Lines | undefined> {
  const { rows } = await sql<{
    lines: string;
    entries: number;
    last_at: number;
    last_sequence: number;
    last_path: number;
  }>`
    select lines, entries, last_at, last_sequence, last_path from change_export_take('export_lines', ${bytes})`.execute(
    transaction,
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const last = { at: row.last_at, sequence: row.last_sequence, path: row.last_path };
  return { text: row.lines, entries: row.entries, last };
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
