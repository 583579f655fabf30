import type { TableMapping } from '../recording/mapping/mapping.ts';
import type { MappedChange } from '../recording/mapping/row-change.ts';
import type { Step } from './step.ts';
import { type TransactionInfo, truncateInfo, withTransactionInfo } from './transaction-info.ts';

/** The step with what its transaction says. */
export function informedStep(step: Step, table: TableMapping, info: TransactionInfo): Step {
  const changes = step.changes.map((mapped) => informed(mapped, table, info));
  if (step.truncate === undefined) return { ...step, changes };
  return { ...step, truncate: { ...step.truncate, ...truncateInfo(step.truncate, table, info) } };
}

function informed(mapped: MappedChange, table: TableMapping, info: TransactionInfo): MappedChange {
  return mapped.kind === 'change' ? { ...mapped, change: withTransactionInfo(mapped.change, table, info) } : mapped;
}
