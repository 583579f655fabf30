import { memberOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { type ChangeType, contentOf, differenceOfChange } from '../../recording/change.ts';
import { applyRules, compileRules, type Sides } from '../../recording/mapping/apply-rules.ts';
import { operations } from '../../recording/mapping/line-of-change.ts';
import type { Mapping, ValueRules } from '../../recording/mapping/mapping.ts';
import type { SourceChange } from '../../recording/mapping/record-mapped.ts';
import { faultOfName } from '../../recording/name-fault.ts';
import type { OutboxRow } from './outbox-rows.ts';

/**
 * The change that `annals.record(…)` wrote, with its documents. The rules of its entity apply to it: masks stand in place of the tokens of
 * the trigger. Of one that can never be recorded a line of an import is kept, as far as it goes.
 */
export function changeByHand(
  row: OutboxRow,
  identity: Uint8Array,
  { actor, context }: { actor: string; context?: string },
  mapping: Mapping,
): Omit<SourceChange, 'position'> {
  const { before, after, at } = row;
  const named = parseJson(row.document ?? '{}');
  const member = (key: string) => stringOf(memberOf(named, key));
  const own = mapping.tenant?.kind === 'value' ? mapping.tenant.tenant : undefined;
  const tenant = tenantByHand(named, mapping);
  const [entity, entityId, name] = [member('entity') ?? '', member('entityId') ?? '', member('name')];
  const type: ChangeType = before === null ? 'create' : after === null ? 'delete' : 'update';
  const shown = maskedSides(row, mapping.entities.get(entity));
  const sides = membersIn({ before: shown.before, after: shown.after });
  const content = () => objectText(sides);
  const rejected = (reason: string): Omit<SourceChange, 'position'> => {
    const line = objectText([
      ['op', JSON.stringify(operations[type])],
      ...membersIn({ entity: memberOf(named, 'entity'), entityId: memberOf(named, 'entityId') }),
      ['at', JSON.stringify(new Date(at).toISOString())],
      ...sides,
    ]);
    return { mapped: { kind: 'rejected', tenant, reason, content: line }, content };
  };
  if (own !== undefined && tenant !== own) return rejected('its tenant is not that of the mapping');
  if (before === null && after === null) return rejected('it has neither "before" nor "after"');
  for (const [what, value] of Object.entries({ entity, entityId, ...(name === undefined ? {} : { name }) })) {
    const fault = faultOfName(value);
    if (fault !== undefined) return rejected(`"${what}" ${fault}`);
  }
  const difference = differenceOfChange(type, shown.before, shown.after);
  if (difference === undefined) return { mapped: { kind: 'unchanged', tenant }, content };
  const change = { identity, at, type, entity, entityId, actor, related: [], ...contentOf(difference) };
  const labelled = {
    ...change,
    ...(name === undefined ? {} : { name }),
    ...(context === undefined ? {} : { context }),
  };
  return { mapped: { kind: 'change', tenant, change: labelled, hasActor: true }, content };
}

/** The tenant that the change names, or that of the mapping. */
export function tenantByHand(named: JsonNode, { tenant, tenants }: Mapping): string | undefined {
  const name = stringOf(memberOf(named, 'tenant'));
  if (name !== undefined) return tenants.get(name) ?? name;
  return tenant?.kind === 'value' ? tenant.tenant : undefined;
}

function maskedSides({ before, after }: OutboxRow, rules: ValueRules | undefined): Sides {
  const sides = {
    before: before === null ? undefined : parseJson(before),
    after: after === null ? undefined : parseJson(after),
  };
  return rules === undefined ? sides : applyRules(compileRules(rules), sides);
}

/** Those of the members that there are. */
function membersIn(members: Readonly<Record<string, JsonNode | undefined>>): [string, JsonNode][] {
  return Object.entries(members).flatMap(([name, value]): [string, JsonNode][] =>
    value === undefined ? [] : [[name, value]],
  );
}
