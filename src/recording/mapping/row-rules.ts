import type { PathPattern } from '../../core/path-pattern.ts';
import { type CompiledRules, compileMasks, compileRules } from './apply-rules.ts';
import type { TableMapping, ValueRules } from './mapping.ts';

/** The rules of a table. Rules that ignore whole columns are separate, since they are cheap. */
export interface RowRules {
  /** Columns ignored as a whole. */
  readonly ignored: ReadonlySet<string>;
  /** All other rules. */
  readonly rest: CompiledRules;
  /** Masks only: a context may show an ignored column. */
  readonly masks: CompiledRules;
}

const prepared = new WeakMap<ValueRules, RowRules>();

/** Compiles the rules of a table, once. */
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
