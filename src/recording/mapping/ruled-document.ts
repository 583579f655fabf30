import { parseJson } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';
import { applyRules, compileRules } from './apply-rules.ts';
import type { Mapping, ValueRules } from './mapping.ts';

const prepared = new WeakMap<Mapping, ReadonlyMap<string, ValueRules>>();

/**
 * Applies the current rules to a document of the history, as JSON text, since a mask may be newer than the document.
 */
export function ruledDocument(mapping: Mapping | undefined, entity: string, document: string): string {
  const rules = mapping && rulesOfDocuments(mapping).get(entity);
  if (rules === undefined) return document;
  const { after } = applyRules(compileRules(rules), { after: parseJson(document) });
  return after === undefined ? '{}' : compactText(after);
}

/** The rules by entity, including those of every table of the entity. */
export function rulesOfDocuments(mapping: Mapping): ReadonlyMap<string, ValueRules> {
  return prepared.getOrInsertComputed(mapping, ({ entities, tables }) => {
    const rules = new Map(entities);
    for (const { entity, rules: own } of tables.values()) {
      const { mask = [], ignore = [] } = rules.get(entity) ?? {};
      rules.set(entity, { mask: [...mask, ...own.mask], ignore: [...ignore, ...own.ignore] });
    }
    return rules;
  });
}
