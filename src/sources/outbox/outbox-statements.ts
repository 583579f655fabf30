/**
 * The rows of each operation. PostgreSQL gives the old and the new rows of an update in the same order. Only this order
 * tells which rows belong together.
 */
const sides = {
  INSERT: `select 0 as place, null::jsonb as before, annals.row_json(q.*, ignored, refused) as after from new_rows as q`,
  DELETE: `select 0 as place, annals.row_json(q.*, ignored, refused) as before, null::jsonb as after from old_rows as q`,
  UPDATE: `select place, o.before, n.after
        from (select row_number() over () as place, annals.row_json(q.*, ignored, refused) as before from old_rows as q) as o
        join (select row_number() over () as place, annals.row_json(q.*, ignored, refused) as after from new_rows as q) as n using (place)
       order by place`,
};

/** What the outbox has besides a row: which part of a row that got another id it is, and which columns are masked because they came later. */
export const rowDocument = `case when parts = 2 or later <> '{}' then jsonb_strip_nulls(jsonb_build_object(
             'part', case when parts = 2 then part end, 'masked', nullif(later, '{}'))) end`;

/** The statements of annals.write_statement: all rows of the operation into the outbox. */
export function writeStatements(): string {
  return Object.entries(sides)
    .map(([operation, rows]) => `  if tg_op = '${operation}' then\n${writeRows(rows)}\n  end if;`)
    .join('\n');
}

// Each "offset 0" keeps PostgreSQL from computing the values of the level below more than once.
function writeRows(rows: string): string {
  return `    insert into annals.outbox (lane, at, transaction, source, before, after, document, actor, context, fault)
    select annals.lane_of(source, case when part = 2 then new_id else id end), clock_timestamp(), pg_current_xact_id(), source,
           parted.before, parted.after, ${rowDocument}, actor, context, fault
      from (
        select identified.*, generate_series(1, parts) as part
          from (
            select shown.*, case when new_id <> id then 2 else 1 end as parts
              from (
                select case when fault is null then case when hides then nullif(hidden -> 'before', 'null') else seen.before end end as before,
                       case when fault is null then case when hides then nullif(hidden -> 'after', 'null') else seen.after end end as after,
                       fault, id, new_id
                  from (
                    select changed.*, coalesce(annals.id_of(coalesce(changed.before, changed.after), ids), '') as id,
                           case when changed.before is not null then annals.id_of(changed.after, ids) end as new_id,
                           case when hides and fault is null then annals.hidden(changed.before, changed.after, rules) end as hidden
                      from (
                        select raw.before, raw.after, case when jsonb_typeof(raw.before) = 'string' then raw.before #>> '{}'
                                                           when jsonb_typeof(raw.after) = 'string' then raw.after #>> '{}' end as fault
                          from (${rows} offset 0) as raw
                         where raw.before is distinct from raw.after or jsonb_typeof(raw.before) = 'string'
                        offset 0) as changed
                    offset 0) as seen
                offset 0) as shown
            offset 0) as identified
        offset 0) as parted;`;
}
