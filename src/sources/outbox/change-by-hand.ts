import { memberOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { type ChangeType, contentOf, differenceOfChange } from '../../recording/change.ts';
import { applyRules, compileRules, type Sides } from '../../recording/mapping/apply-rules.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import type { MappedChange } from '../../recording/mapping/row-change.ts';
import { faultOfName } from '../../recording/name-fault.ts';
import type { OutboxRow } from './outbox-rows.ts';

/** The change that `annals.record(…)` wrote. The rules of its entity apply to it. */
export function changeByHand(
  { before, after, document, at }: OutboxRow,
  identity: Uint8Array,
  { actor, context }: { actor: string; context?: string },
  mapping: Mapping,
): MappedChange {
  const named = parseJson(document ?? '{}');
  const member = (key: string) => stringOf(memberOf(named, key));
  const given = member('tenant');
  const own = mapping.tenant?.kind === 'value' ? mapping.tenant.tenant : undefined;
  const tenant = given === undefined ? own : (mapping.tenants.get(given) ?? given);
  const [entity, entityId, name] = [member('entity') ?? '', member('entityId') ?? '', member('name')];
  const rejected = (reason: string): MappedChange => ({
    kind: 'rejected',
    tenant,
    reason,
    content: keptByHand({ before, after, document, at }, mapping),
  });
  if (own !== undefined && tenant !== own) return rejected('its tenant is not that of the mapping');
  if (before === null && after === null) return rejected('it has neither "before" nor "after"');
  for (const [what, value] of Object.entries({ entity, entityId, ...(name === undefined ? {} : { name }) })) {
    const fault = faultOfName(value);
    if (fault !== undefined) return rejected(`"${what}" ${fault}`);
  }
  const type: ChangeType = before === null ? 'create' : after === null ? 'delete' : 'update';
  const shown = maskedSides({ before, after }, entity, mapping);
  const difference = differenceOfChange(type, shown.before, shown.after);
  if (difference === undefined) return { kind: 'unchanged', tenant };
  const change = { identity, at, type, entity, entityId, actor, related: [], ...contentOf(difference) };
  const labelled = {
    ...change,
    ...(name === undefined ? {} : { name }),
    ...(context === undefined ? {} : { context }),
  };
  return { kind: 'change', tenant, change: labelled, hasActor: true };
}

/** The documents of a change that was written by hand as JSON text, with masks in place of the tokens of the trigger. */
export function sidesByHand(
  { before, after, document }: Pick<OutboxRow, 'before' | 'after' | 'document'>,
  mapping: Mapping,
): string {
  const entity = stringOf(memberOf(parseJson(document ?? '{}'), 'entity')) ?? '';
  return objectText(givenSides(maskedSides({ before, after }, entity, mapping)));
}

/** What is kept of such a change where it can never be recorded: a line of an import, as far as it goes. */
function keptByHand(
  { before, after, document, at }: Pick<OutboxRow, 'before' | 'after' | 'document' | 'at'>,
  mapping: Mapping,
): string {
  const named = parseJson(document ?? '{}');
  const entity = memberOf(named, 'entity');
  const entityId = memberOf(named, 'entityId');
  const op = before === null ? 'insert' : after === null ? 'delete' : 'update';
  return objectText([
    ['op', JSON.stringify(op)],
    ...(entity === undefined ? [] : [['entity', entity] as const]),
    ...(entityId === undefined ? [] : [['entityId', entityId] as const]),
    ['at', JSON.stringify(new Date(at).toISOString())],
    ...givenSides(maskedSides({ before, after }, stringOf(entity) ?? '', mapping)),
  ]);
}

function maskedSides({ before, after }: Pick<OutboxRow, 'before' | 'after'>, entity: string, mapping: Mapping): Sides {
  const rules = mapping.entities.get(entity);
  const sides = {
    before: before === null ? undefined : parseJson(before),
    after: after === null ? undefined : parseJson(after),
  };
  return rules === undefined ? sides : applyRules(compileRules(rules), sides);
}

function givenSides({ before, after }: Sides): [string, JsonNode][] {
  return [
    ...(before === undefined ? [] : [['before', before] as [string, JsonNode]]),
    ...(after === undefined ? [] : [['after', after] as [string, JsonNode]]),
  ];
}
