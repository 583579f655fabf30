import { kindOf, memberOf, stringOf } from '../../core/json/members.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { type Change, unknownActor, type Who } from '../change.ts';
import { faultOfCorrelation, faultOfName } from '../member-faults.ts';
import type { ColumnOrValue, WhoColumns } from './mapping.ts';
import { labelOf, plainTextOf, type Row } from './row-change.ts';

/** The change as made by `who`, with nothing left of who it named before. */
export function madeBy(change: Change, who: Who): Change {
  const { actorId: _actorId, onBehalfOf: _onBehalfOf, ...rest } = change;
  return { ...rest, actor: unknownActor, ...who };
}

/** Who made the change of a row, by its columns. Undefined if they do not say. */
export function whoOf(row: Row, columns: WhoColumns): Who | undefined {
  if (columns.size === 0) return undefined;
  const name = ({ value, column }: ColumnOrValue = {}) => value ?? labelOf(row, column);
  const id = (source: ColumnOrValue | undefined) => idOf(row, source, faultOfName);
  return presentWho(
    { actor: name(columns.get('actor')), actorId: id(columns.get('actorId')) },
    { name: name(columns.get('onBehalfOf.name')), id: id(columns.get('onBehalfOf.id')) },
  );
}

/**
 * Who made a change, by the members `actor`, `actorId` and `onBehalfOf` of an object. Undefined if it has none of them.
 */
export function readWho(object: JsonNode): Who | 'invalid' | undefined {
  const person = memberOf(object, 'onBehalfOf');
  const ofActor = namesIn(object, ['actor', 'actorId']);
  const isAbsent = person === undefined || kindOf(person) === 'null';
  const ofPerson = isAbsent ? {} : namesIn(person, ['name', 'id']);
  return ofActor === undefined || ofPerson === undefined ? 'invalid' : presentWho(ofActor, ofPerson);
}

/** The members of an object that are there. Undefined if one is not valid, or if it is no object. */
function namesIn<Name extends string>(object: JsonNode, names: readonly Name[]): Parts<Name> | undefined {
  if (kindOf(object) !== 'object') return undefined;
  const found: { [name in Name]?: string } = {};
  for (const name of names) {
    const member = memberOf(object, name);
    if (member === undefined || kindOf(member) === 'null') continue;
    const text = stringOf(member);
    if (text === undefined || faultOfName(text) !== undefined) return undefined;
    found[name] = text;
  }
  return found;
}

type Parts<Names extends string> = { readonly [name in Names]?: string | undefined };

function presentWho(
  { actor, actorId }: Parts<'actor' | 'actorId'>,
  { name, id }: Parts<'name' | 'id'>,
): Who | undefined {
  if ((actor ?? actorId ?? name ?? id) === undefined) return undefined;
  const person = { ...(name !== undefined && { name }), ...(id !== undefined && { id }) };
  return {
    ...(actor !== undefined && { actor }),
    ...(actorId !== undefined && { actorId }),
    ...((name ?? id) !== undefined && { onBehalfOf: person }),
  };
}

/** The correlation id of a row's change. Undefined if it is not valid. */
export function correlationOf(row: Row, source: ColumnOrValue | undefined): string | undefined {
  return idOf(row, source, faultOfCorrelation);
}

/** An id of a row; undefined if it is not valid. Not truncated: that would be the id of something else. */
function idOf(
  row: Row,
  { value, column }: ColumnOrValue = {},
  faultOf: (id: string) => string | undefined,
): string | undefined {
  if (value !== undefined || column === undefined) return value;
  const json = row.get(column);
  const id = json === undefined ? undefined : plainTextOf(json);
  return id === undefined || faultOf(id) !== undefined ? undefined : id;
}
