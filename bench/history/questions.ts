/** A row of the benchmark: the same question in the query language and as a condition on the table `plain`. */
export interface Question {
  row: string;
  q: string;
  /** A condition on `plain`, with `$from` for the beginning of the window and `$1` for the tenant. */
  where: string;
  /** The window in days before now; 30 unless told. */
  days?: number;
  /** Whether the tallies alone answer it, and with how many matching names at most. */
  names?: number;
}

const day = 86_400_000;

/** The ten rows of the short table. */
export const shortTableRows = [
  'no filter',
  'entity and type',
  'type',
  'actor with 40 %',
  'entity with three entries',
  'actor glob, 100 names',
  'actor regex, 100 names',
  'entityId',
  'OR of unlike kinds',
  'explicit 24 hours',
];

/** The rows, for a moment in milliseconds since 1970. */
export function questionsAt(now: number): Question[] {
  const since = (days: number) => new Date(now - days * day).toISOString();
  return [
    { row: 'no filter', q: '', where: 'true', names: 1 },
    { row: 'entity', q: 'entity:order', where: "entity = 'order'", names: 1 },
    {
      row: 'entity and type',
      q: 'entity:product type:create',
      where: "entity = 'product' and type = 'create'",
      names: 1,
    },
    { row: 'type', q: 'type:delete', where: "type = 'delete'", names: 1 },
    { row: 'actor exact', q: 'actor:system', where: "actor = 'system'", names: 1 },
    { row: 'actor with 40 %', q: 'actor:Mia Lang', where: "actor = 'Mia Lang'", names: 1 },
    { row: 'entity with three entries', q: 'entity:warehouse', where: "entity = 'warehouse'", names: 1 },
    { row: 'actor exact, few entries', q: 'actor:Jane Doe 07', where: "actor = 'Jane Doe 07'", names: 1 },
    { row: 'actor glob, 100 names', q: 'actor:*ina Kim *', where: "actor like '%ina Kim %'", names: 100 },
    { row: 'actor prefix, 100 names', q: 'actor:Nina Kim *', where: "actor like 'Nina Kim %'", names: 100 },
    { row: 'actor regex, 100 names', q: 'actor:~^Omar S.*a ', where: "actor ~ '^Omar S.*a '", names: 100 },
    { row: 'actor glob, 1,000 names', q: 'actor:*Weber *', where: "actor like '%Weber %'", names: 1000 },
    { row: 'actor regex, 2,000 names', q: 'actor:~^J(ane|ohn)', where: "actor ~ '^J(ane|ohn)'", names: 2000 },
    {
      row: 'entity and actor regex',
      q: 'entity:order actor:~^Omar S.*a ',
      where: "entity = 'order' and actor ~ '^Omar S.*a '",
      names: 100,
    },
    { row: 'entityId', q: 'entity:order entityId:d4711', where: "entity = 'order' and entity_id = 'd4711'" },
    {
      row: 'related pair',
      q: 'related.entity:customer related.entityId:c77',
      where: `related @> '[{"entity":"customer"}]' and related @> '[{"entityId":"c77"}]'`,
    },
    {
      row: 'elemMatch',
      q: 'related:elemMatch(entity:group entityId:g77)',
      where: `related @> '[{"entity":"group","entityId":"g77"}]'`,
    },
    { row: 'related type', q: 'related.entity:group', where: `related @> '[{"entity":"group"}]'`, names: 1 },
    {
      row: 'OR of unlike kinds',
      q: 'compoundLogicalQuery:((type:delete actor:Jane*) OR (entity:order entityId:d4711))',
      where: "((type = 'delete' and actor like 'Jane%') or (entity = 'order' and entity_id = 'd4711'))",
    },
    {
      row: 'nested compound',
      q: 'compoundLogicalQuery:(((entity:order type:create) OR (entity:(quote, coupon))) AND ((actor:Zoë Kim *) OR (type:delete)))',
      where:
        "((entity = 'order' and type = 'create') or entity in ('quote', 'coupon')) and (actor like 'Zoë Kim %' or type = 'delete')",
      names: 100,
    },
    {
      row: 'explicit 24 hours',
      q: `occurredAt:(>="${since(9)}" AND <"${since(8)}")`,
      where: `at < '${since(8)}'`,
      days: 9,
      names: 1,
    },
    { row: 'explicit 60 days', q: `occurredAt:>="${since(60)}"`, where: 'true', days: 60, names: 1 },
  ];
}
