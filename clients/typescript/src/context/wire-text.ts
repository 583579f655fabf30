import type { Context } from './context.ts';
import { warnOnce } from './warning.ts';

const maxNameCharacters = 1000;
const maxCorrelationCharacters = 200;
const maxContextBytes = 4096;
const maxContextLevels = 4;

/**
 * A context as the ASCII JSON of `annals.who`. A member that Annals would not accept is left out, with a warning, so that
 * the others count. Undefined if none is left.
 */
export function wireText(context: Context): string | undefined {
  const { onBehalfOf } = context;
  const person = members({
    name: nameOf('onBehalfOf.name', onBehalfOf?.name),
    id: nameOf('onBehalfOf.id', onBehalfOf?.id),
  });
  const parts = members({
    actor: nameOf('actor', context.actor),
    actorId: nameOf('actorId', context.actorId),
    onBehalfOf: person,
    correlationId: nameOf('correlationId', context.correlationId, maxCorrelationCharacters),
    context: contextText(context.context),
  });
  return parts;
}

/** A JSON object of the members that are present: their values are JSON already. */
function members(values: Record<string, string | undefined>): string | undefined {
  const present = Object.entries(values).filter(([, text]) => text !== undefined);
  return present.length === 0 ? undefined : `{${present.map(([name, text]) => `"${name}":${text}`).join(',')}}`;
}

function nameOf(member: string, value: unknown, maximum = maxNameCharacters): string | undefined {
  if (value === undefined || value === null) return undefined;
  const text = typeof value === 'bigint' || isExact(value) ? String(value) : value;
  const fault = faultOfName(text, maximum);
  if (fault === undefined) return ascii(JSON.stringify(text));
  warnOnce(`MEMBER_${member}`, `the member ${member} of a context ${fault}: it is left out`);
  return undefined;
}

/** A rounded number may be the id of somebody else, and NaN is that of everybody. */
function isExact(value: unknown): boolean {
  return Number.isFinite(value) && (Number.isSafeInteger(value) || !Number.isInteger(value));
}

function faultOfName(text: unknown, maximum: number): string | undefined {
  if (typeof text === 'number') return 'is an inexact number, for which a string or a BigInt is needed';
  if (typeof text !== 'string') return 'is no text';
  if (text === '') return 'is empty';
  if (text.length > maximum && (text.length > 2 * maximum || [...text].length > maximum))
    return `has more than ${maximum} characters`;
  return isStorable(text) ? undefined : 'has a NUL character or a lone surrogate';
}

function contextText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  const result = jsonOf(value);
  if (typeof result === 'object') return result.text;
  warnOnce('MEMBER_context', `the member context of a context ${result}: it is left out`);
  return undefined;
}

/** The JSON of an object within the limits, or what is wrong with it. */
function jsonOf(value: unknown): { text: string } | string {
  let isText = true;
  let json: string | undefined;
  try {
    json = JSON.stringify(value, (key, part) => {
      if (!isStorable(key) || (typeof part === 'string' && !isStorable(part))) isText = false;
      return part;
    });
  } catch {
    return 'cannot be written as JSON';
  }
  if (json?.[0] !== '{') return 'is no object';
  if (!isText) return 'has a NUL character or a lone surrogate';
  const text = json.length > maxContextBytes ? json : ascii(json);
  if (text.length > maxContextBytes) return `has more than ${maxContextBytes} bytes`;
  return levelsOf(JSON.parse(json)) > maxContextLevels ? `has more than ${maxContextLevels} levels` : { text };
}

function levelsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(levelsOf));
}

function isStorable(text: string): boolean {
  return !text.includes('\0') && !/\p{Surrogate}/u.test(text);
}

function ascii(json: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all that is not ASCII.
  return json.replace(/[^\x00-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
