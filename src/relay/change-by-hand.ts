import { memberOf, stringOf } from '../json/members.ts';
import { parseJson } from '../json/parse.ts';
import { type ChangeType, contentOf, differenceOfChange } from '../recording/change.ts';
import { applyRules, compileRules } from '../recording/mapping/apply-rules.ts';
import type { Mapping } from '../recording/mapping/mapping.ts';
import type { MappedChange } from '../recording/mapping/row-change.ts';
import { faultOfName } from '../recording/name-fault.ts';
import type { OutboxRow } from './outbox-rows.ts';

/** The change that `annals.record(…)` wrote. The rules of its entity apply to it. */
export function changeByHand(
  { before, after, document, at }: OutboxRow,
  identity: Uint8Array,
  { actor = 'unknown', context }: { actor?: string; context?: string },
  mapping: Mapping,
): MappedChange {
  const named = parseJson(document ?? '{}');
  const member = (key: string) => stringOf(memberOf(named, key));
  const given = member('tenant');
  const own = mapping.tenant?.kind === 'value' ? mapping.tenant.tenant : undefined;
  const tenant = given === undefined ? own : (mapping.tenants.get(given) ?? given);
  const [entity, entityId, name] = [member('entity') ?? '', member('entityId') ?? '', member('name')];
  const rejected = (reason: string): MappedChange => ({ kind: 'rejected', tenant, reason, content: '{}' });
  if (own !== undefined && tenant !== own) return rejected('its tenant is not that of the mapping');
  if (before === null && after === null) return rejected('it has neither "before" nor "after"');
  for (const [what, value] of Object.entries({ entity, entityId, ...(name === undefined ? {} : { name }) })) {
    const fault = faultOfName(value);
    if (fault !== undefined) return rejected(`"${what}" ${fault}`);
  }
  const type: ChangeType = before === null ? 'create' : after === null ? 'delete' : 'update';
  const rules = mapping.entities.get(entity);
  const sides = {
    before: before === null ? undefined : parseJson(before),
    after: after === null ? undefined : parseJson(after),
  };
  const shown = rules === undefined ? sides : applyRules(compileRules(rules), sides);
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
