import { parseJson } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';
import { applyRules, type CompiledRules, compileRules } from './apply-rules.ts';
import type { Mapping, ValueRules } from './mapping.ts';

const prepared = new WeakMap<Mapping, Map<string, CompiledRules>>();

/**
 * A document of the history, as JSON text, by the rules of today. It was recorded before, and a mask may be newer: what is recorded of it
 * from now on must not have the value.
 */
export function ruledDocument(mapping: Mapping | undefined, entity: string, document: string): string {
  if (mapping === undefined) return document;
  const rules = rulesOf(mapping, entity);
  if (rules.isEmpty) return document;
  const { after } = applyRules(rules, { after: parseJson(document) });
  return after === undefined ? '{}' : compactText(after);
}

/** Those of the entity and of every table whose rows are its documents. */
function rulesOf(mapping: Mapping, entity: string): CompiledRules {
  const known = prepared.get(mapping) ?? new Map<string, CompiledRules>();
  prepared.set(mapping, known);
  const found = known.get(entity);
  if (found !== undefined) return found;
  const ofTables = [...mapping.tables.values()].filter((table) => table.entity === entity).map(({ rules }) => rules);
  const all: ValueRules[] = [...ofTables, mapping.entities.get(entity) ?? { mask: [], ignore: [] }];
  const compiled = compileRules({
    mask: all.flatMap(({ mask }) => mask),
    ignore: all.flatMap(({ ignore }) => ignore),
  });
  known.set(entity, compiled);
  return compiled;
}
