import type { Condition, Query } from './ast.ts';
import type { FieldNeed } from './dialect.ts';
import { QueryError } from './query-error.ts';

/**
 * Throws where a field needs another one (contract 4: `entityId` needs `entity`) and that one is neither beside it nor in an
 * AND that contains it. A term in an arm of an OR serves that arm alone, even where every arm has it.
 */
export function checkNeeds(query: Query, needs: readonly FieldNeed[]): void {
  for (const need of needs) check(query, need, false);
}

function check(condition: Condition, need: FieldNeed, served: boolean): void {
  if (condition.kind === 'match' && condition.field === need.field && !served) {
    throw new QueryError(
      condition.position,
      `a term ${need.needs}:… beside this ${need.field} or above it`,
      need.message,
    );
  }
  if (condition.kind !== 'and' && condition.kind !== 'or') return;
  const servedHere = served || serves(condition, need);
  for (const operand of condition.operands) check(operand, need, servedHere);
}

function serves(condition: Condition, need: FieldNeed): boolean {
  if (condition.kind === 'match') return condition.field === need.needs;
  return condition.kind === 'and' && condition.operands.some((operand) => serves(operand, need));
}
