/** A question of the session, and how plain SQL selects the same rows of the table `plain`. */
export interface SessionQuestion {
  row: string;
  q: string;
  where: string;
}

/** From one key of the tallies to a thousand. */
export const sessionQuestions: readonly SessionQuestion[] = [
  { row: 'no filter', q: '', where: 'true' },
  { row: 'entity', q: 'entity:order', where: "entity = 'order'" },
  { row: 'entity and type', q: 'entity:product type:create', where: "entity = 'product' and type = 'create'" },
  { row: 'actor', q: 'actor:system', where: "actor = 'system'" },
  { row: '100 names (glob)', q: 'actor:*ina Kim *', where: "actor like '%ina Kim %'" },
  { row: '1,000 names (glob)', q: 'actor:*Weber *', where: "actor like '%Weber %'" },
  { row: '100 names (regex)', q: 'actor:~^Omar S.*a ', where: "actor ~ '^Omar S.*a '" },
];
