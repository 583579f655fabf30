import type { TableMapping } from '../../recording/mapping/mapping.ts';
import type { MappedChange } from '../../recording/mapping/row-change.ts';
import type { Step } from './step.ts';
import { type TransactionInfo, truncateInfo, withTransactionInfo } from './transaction-info.ts';

/** What a transaction says: a message of the application, and the new row of a table that names its actor. */
export interface SaidByTransaction {
  readonly info: TransactionInfo | undefined;
  /** For changes of which nothing else says who made them. */
  readonly actor: string | undefined;
}

/** The step with what its transaction says. */
export function informedStep(step: Step, table: TableMapping, { info = silent, actor }: SaidByTransaction): Step {
  const changes = step.changes.map((mapped) => informed(mapped, table, info, actor));
  if (step.truncate === undefined) return { ...step, changes };
  const truncate = actor === undefined ? step.truncate : { ...step.truncate, actor };
  return { ...step, truncate: { ...truncate, ...truncateInfo(truncate, table, info) } };
}

const silent: TransactionInfo = { actor: undefined, context: undefined };

function informed(
  mapped: MappedChange,
  table: TableMapping,
  info: TransactionInfo,
  actor: string | undefined,
): MappedChange {
  if (mapped.kind !== 'change') return mapped;
  const change = mapped.hasActor || actor === undefined ? mapped.change : { ...mapped.change, actor };
  return { ...mapped, change: withTransactionInfo(change, table, info) };
}
