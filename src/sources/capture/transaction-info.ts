import { memberOf, membersOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseJson, parseObject } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';
import type { Change } from '../../recording/change.ts';
import { faultOfContext } from '../../recording/change-context.ts';
import { mappedContext } from '../../recording/mapping/mapped-context.ts';
import type { TableMapping } from '../../recording/mapping/mapping.ts';
import { faultOfName } from '../../recording/name-fault.ts';

/** What the application says about a transaction with `pg_logical_emit_message(true, 'annals.actor', …)`. */
export interface TransactionInfo {
  readonly actor: string | undefined;
  /** JSON text of an object. */
  readonly context: string | undefined;
}

/** Reads the content of such a message. Undefined where it cannot be read. */
export function readTransactionInfo(content: Buffer): TransactionInfo | undefined {
  const message = parseObject(content.toString('utf8'));
  if (message === undefined) return undefined;
  const extra = memberOf(message, 'actor');
  const actor = stringOf(extra);
  if (extra !== undefined && (actor === undefined || faultOfName(actor) !== undefined)) return undefined;
  const context = memberOf(message, 'context');
  if (context !== undefined && faultOfContext(context) !== undefined) return undefined;
  return { actor, context: context && compactText(context) };
}

/** The change with what its transaction says, which comes before what the row says. Masks of the table apply to it. */
export function withTransactionInfo(change: Change, table: TableMapping, info: TransactionInfo): Change {
  const actor = info.actor ?? change.actor;
  const extra = info.context === undefined ? undefined : mappedContext(table, new Map(), info.context);
  if (extra === undefined) return { ...change, actor };
  return { ...change, actor, context: mergedContext(change.context, extra) };
}

/** What the transaction says of a truncate, whose rows are not in the log. */
export function truncateInfo(
  { actor }: { actor: string },
  table: TableMapping,
  info: TransactionInfo,
): { actor: string; context: string | undefined } {
  const context = info.context === undefined ? undefined : mappedContext(table, new Map(), info.context);
  return { actor: info.actor ?? actor, context };
}

function mergedContext(own: string | undefined, extra: string): string {
  if (own === undefined) return extra;
  const merged = objectText(new Map([...membersOf(parseJson(own)), ...membersOf(parseJson(extra))]));
  // Each of the two is within the limit; both together may be beyond it.
  return faultOfContext(parseJson(merged)) === undefined ? merged : extra;
}
