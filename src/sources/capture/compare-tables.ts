import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { objectText } from '../../core/json/members.ts';
import { hashOf } from '../../core/text-hash.ts';
import { type CatalogueTable, quotedTable } from '../../postgres/source/source-catalogue.ts';
import { findErasedDocuments } from '../../recording/erased-changes.ts';
import { documentOfRow } from '../../recording/mapping/changes-of-row.ts';
import { changeOfSnapshot } from '../../recording/mapping/history-changes.ts';
import { PostgresTypes } from '../../recording/mapping/postgres-types.ts';
import type { SourceChange } from '../../recording/mapping/record-mapped.ts';
import type { MappedDocument, Row } from '../../recording/mapping/row-change.ts';
import { Occurrences } from '../../recording/occurrences.ts';
import { currentDocuments } from '../../recording/rebuild/current-documents.ts';
import { CaptureError } from './capture-error.ts';
import type { CaptureOptions } from './capture-options.ts';
import type { Position } from './position.ts';
import { deleteDocuments, recordCaptured } from './record-captured.ts';

export interface Comparison {
  /** The name of the source's snapshot. */
  readonly snapshot: string;
  readonly tables: ReadonlyMap<string, CatalogueTable>;
  /** The position throughout the comparison. */
  readonly position: Position;
}

/** The actor of the deletes, as of all entries of a comparison. */
const systemActor = 'system';
/** The position of the changes in the source, for people. */
const position = 'snapshot';

/** Rows of the first page; maximum rows, and about the maximum bytes, of each later page. */
const firstPage = 100;
const maxPage = 2_000;
const pageBytes = 8 * 1024 * 1024;

/** Rows between progress reports. */
const progressRows = 10_000;

/**
 * Compares the rows of the mapped tables in a snapshot of the source with the history, and records the differences:
 * creates, updates, and deletes of documents without a row. Returns the snapshot's time in milliseconds since 1970.
 * `client`: a dedicated connection.
 */
export async function compareTables(
  client: pg.Client,
  comparison: Comparison,
  options: CaptureOptions,
): Promise<number> {
  try {
    await client.query('begin isolation level repeatable read read only');
    await client.query(`set transaction snapshot ${pg.escapeLiteral(comparison.snapshot)}`);
    // Rows hidden by a policy would look deleted. With this they are an error.
    await client.query('set local row_security = off');
    await client.query('set local statement_timeout = 0');
    const { rows } = await client.query<{ at: string }>(
      'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as at',
    );
    const at = Number(rows[0]?.at);
    await new TableComparer(client, comparison, options, at).run();
    await client.query('commit');
    return at;
  } catch (error) {
    const isForbidden = error instanceof pg.DatabaseError && error.code === '42501';
    if (!isForbidden) throw error;
    throw new CaptureError(
      `the role of the source URL may not read every row: ${error.message}. Let an owner grant select (or bypassrls)`,
    );
  }
}

class TableComparer {
  readonly #client: pg.Client;
  readonly #comparison: Comparison;
  readonly #options: CaptureOptions;
  readonly #at: number;
  readonly #types: PostgresTypes;
  readonly #seen = new Occurrences();

  constructor(client: pg.Client, comparison: Comparison, options: CaptureOptions, at: number) {
    this.#client = client;
    this.#comparison = comparison;
    this.#options = options;
    this.#at = at;
    this.#types = new PostgresTypes(client);
  }

  async run(): Promise<void> {
    const { mapping, log, signal } = this.#options;
    try {
      const entities = new Set<string>();
      for (const [name, table] of this.#comparison.tables) {
        const mapped = mapping.tables.get(name);
        if (mapped === undefined || !mapped.snapshot) continue;
        entities.add(mapped.entity);
        const rows = await this.#compareTable(name, table);
        log.info({ table: name, rows }, 'a table was compared with the history');
      }
      // A document of a table that is not compared would look as if its row were gone.
      for (const mapped of mapping.tables.values()) if (!mapped.snapshot) entities.delete(mapped.entity);
      for (const entity of entities) {
        log.info({ entity }, 'looking in the history for documents without a row');
        await this.#deleteGone(entity);
      }
      signal.throwIfAborted();
    } finally {
      this.#seen.close();
    }
  }

  async #compareTable(name: string, table: CatalogueTable): Promise<number> {
    const columns = table.columns.filter(({ isGenerated }) => !isGenerated);
    await this.#types.load(columns.map(({ type }) => type));
    // Excludes inheriting tables. The rows of a partitioned table are in its partitions.
    const from = `${table.kind === 'p' ? '' : 'only '}${quotedTable(table)}`;
    const list = columns.map((column) => pg.escapeIdentifier(column.name)).join(', ');
    await this.#client.query(`declare annals_rows no scroll cursor for select ${list} from ${from}`);
    const total = await this.#estimate(table);
    let limit = firstPage;
    let count = 0;
    let reported = 0;
    for (;;) {
      this.#options.signal.throwIfAborted();
      const { rows } = await this.#client.query<(string | null)[]>({
        text: `fetch ${limit} from annals_rows`,
        rowMode: 'array',
      });
      if (rows.length === 0) break;
      count += rows.length;
      const bytes = rows.reduce((sum, row) => sum + row.reduce((size, value) => size + (value?.length ?? 0), 0), 1);
      limit = Math.max(1, Math.min(maxPage, Math.floor((pageBytes * rows.length) / bytes)));
      const documents = rows.map((values) => {
        const row: Row = new Map(
          columns.map(({ name: column, type }, index) => {
            const value = values[index] ?? null;
            return [column, value === null ? 'null' : this.#types.text(type, value)];
          }),
        );
        const change = { table: name, type: 'create', at: this.#at, identity: randomBytes(16), after: row } as const;
        return documentOfRow(this.#options.mapping, { ...change, primaryKey: table.primaryKey });
      });
      await this.#take(documents.filter((document) => document !== undefined));
      if (count - reported < progressRows) continue;
      reported = count;
      const { log } = this.#options;
      log.info({ table: name, rows: count, ofAbout: total }, 'comparing a table with the history');
    }
    await this.#client.query('close annals_rows');
    return count;
  }

  /** The estimated number of rows; undefined if the table was never analyzed. */
  async #estimate({ oid, partitions }: CatalogueTable): Promise<number | undefined> {
    const oids = partitions.length === 0 ? [oid] : partitions.map((partition) => partition.oid);
    const { rows } = await this.#client.query<{ total: string | null }>(
      'select sum(reltuples)::bigint as total from pg_catalog.pg_class where oid = any ($1::oid[]) and reltuples >= 0',
      [oids],
    );
    const total = rows[0]?.total ?? null;
    return total === null ? undefined : Number(total);
  }

  async #take(documents: readonly MappedDocument[]): Promise<void> {
    const changes: SourceChange[] = documents
      .filter((document) => document.kind === 'rejected')
      .map((mapped) => ({ mapped, position, content: () => mapped.content }));
    const present = documents.filter((document) => document.kind === 'document');
    for (const [tenant, of] of Map.groupBy(present, (document) => document.tenant)) {
      if (tenant === undefined) continue;
      for (const [entity, group] of Map.groupBy(of, ({ change }) => change.entity)) {
        const ids = group.map(({ change }) => change.entityId);
        for (const id of ids) this.#seen.next(seenKey(tenant, entity, id));
        const stored = await currentDocuments(this.#options.db, tenant, entity, ids);
        const erased = await this.#findErased(tenant, entity, group);
        for (const [index, document] of group.entries()) {
          if (erased[index] === true) continue;
          const change = changeOfSnapshot(document, stored[index], this.#options.mapping);
          if (change === undefined) continue;
          const content = () => objectText([['after', document.document]]);
          changes.push({ mapped: { kind: 'change', tenant, change, hasActor: true }, position, content });
        }
      }
    }
    await this.#record(changes);
  }

  /** Finds erased documents whose rows still exist, without logging their identity. */
  async #findErased(tenant: string, entity: string, documents: readonly Mapped[]): Promise<readonly boolean[]> {
    const { db, sealer, log } = this.#options;
    if (sealer === undefined) return [];
    const erased = await findErasedDocuments(
      db,
      sealer,
      tenant,
      documents.map(({ change: { entityId } }) => ({ entity, entityId })),
    );
    const rows = erased.filter(Boolean).length;
    if (rows > 0)
      log.warn({ tenant, entity, rows }, 'rows of erased documents still exist at the source; they are skipped');
    return erased;
  }

  async #deleteGone(entity: string): Promise<void> {
    await deleteDocuments(this.#options, {
      entity,
      who: { actor: systemActor },
      context: undefined,
      at: this.#at,
      position,
      // Their rows may still exist, under the erased ids.
      withoutErased: true,
      isGone: (tenant, id) => this.#seen.next(seenKey(tenant, entity, id)) === 0,
      record: (changes) => this.#record(changes),
    });
  }

  async #record(changes: readonly SourceChange[]): Promise<void> {
    if (changes.length === 0) return;
    const { position: unchanged } = this.#comparison;
    await recordCaptured({ changes, from: unchanged, to: unchanged, truncate: undefined }, this.#options);
  }
}

type Mapped = Extract<MappedDocument, { kind: 'document' }>;

function seenKey(tenant: string, entity: string, id: string): Buffer {
  return hashOf(JSON.stringify([tenant, entity, id]));
}
