import { jsonOfPostgres, jsonOfPostgresJson, type PostgresType, postgresType, type TypeRow } from './postgres-value.ts';

/** Runs a statement on the source: a `pg.Client` or `pg.Pool`. */
export interface SourceQueries {
  query<Row extends object>(text: string, values: unknown[]): Promise<{ rows: Row[] }>;
}

/** The column types of a source. Looks up types that are not built in once, in the catalog. */
export class PostgresTypes {
  readonly #source: SourceQueries;
  readonly #rows = new Map<number, TypeRow>();
  readonly #types = new Map<number, PostgresType>();

  constructor(source: SourceQueries) {
    this.#source = source;
  }

  /** Loads the types with these OIDs, and the types they are based on. */
  async load(oids: readonly number[]): Promise<void> {
    const fresh = [...new Set(oids)].filter((oid) => !this.#types.has(oid));
    if (fresh.length === 0) return;
    const { rows } = await this.#source.query<{ oid: string; base: string; element: string; delimiter: string }>(
      typesStatement,
      [fresh],
    );
    for (const { oid, base, element, delimiter } of rows) {
      this.#rows.set(Number(oid), { oid: Number(oid), base: Number(base), element: Number(element), delimiter });
    }
    for (const oid of fresh) this.#types.set(oid, postgresType(oid, this.#rows));
  }

  /** The JSON form of the type, in words. The type must be loaded. */
  description(oid: number): string {
    const words = (type: PostgresType): string => {
      if (type.kind === 'array') return `array of ${words(type.element)}`;
      return type.kind === 'instant' ? 'time in UTC' : type.kind === 'timestamp' ? 'time without zone' : type.kind;
    };
    return words(this.#type(oid));
  }

  /** The JSON text of a value in text format. The type must be loaded. */
  text(oid: number, text: string): string {
    return jsonOfPostgres(this.#type(oid), text);
  }

  /** The JSON text of a value that the source wrote as JSON. The type must be loaded. */
  ofJson(oid: number, json: string): string {
    return jsonOfPostgresJson(this.#type(oid), json);
  }

  #type(oid: number): PostgresType {
    const type = this.#types.get(oid);
    if (type === undefined) throw new Error(`the type with OID ${oid} was not loaded`);
    return type;
  }
}

// A true array is the array type of its element; int2vector, for example, is not and has another text format.
const typesStatement = `
with recursive used as (
  select unnest($1::oid[]) as oid
  union
  select case when t.typtype = 'd' then t.typbasetype else t.typelem end
    from used join pg_catalog.pg_type t using (oid)
   where t.typtype = 'd' or t.typelem <> 0
)
select t.oid::text, case when t.typtype = 'd' then t.typbasetype else 0 end::text as base,
       case when e.typarray = t.oid then e.oid else 0 end::text as element, t.typdelim as delimiter
  from used
  join pg_catalog.pg_type t using (oid)
  left join pg_catalog.pg_type e on e.oid = t.typelem and t.typtype = 'b'`;
