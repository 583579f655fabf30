import type { PathPattern } from '../../core/path-pattern.ts';
import { type CompiledRules, compileMasks, compileRules } from './apply-rules.ts';
import type { TableMapping, ValueRules } from './mapping.ts';

/** The rules of a table. Rules that only leave out whole columns are separate, because they are cheap. */
export interface RowRules {
  /** Columns that are left out as they are. */
  readonly ignored: ReadonlySet<string>;
  /** All other rules. */
  readonly rest: CompiledRules;
  /** What is masked, without what is ignored: a context may show an ignored column. */
  readonly masks: CompiledRules;
}

const prepared = new WeakMap<ValueRules, RowRules>();

/** Prepares the rules of a table, once. */
export function rowRules({ rules }: TableMapping): RowRules {
  return prepared.getOrInsertComputed(rules, ({ mask, ignore }) => ({
    ignored: new Set(ignore.flatMap((pattern) => wholeColumn(pattern) ?? [])),
    rest: compileRules({ mask, ignore: ignore.filter((pattern) => wholeColumn(pattern) === undefined) }),
    masks: compileMasks(rules),
  }));
}

function wholeColumn({ keys: [column, ...rest] }: PathPattern): string | undefined {
  return rest.length === 0 ? (column ?? undefined) : undefined;
}
