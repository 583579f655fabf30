import { elementsOf, kindOf, memberOf, stringOf } from '../../../core/json/members.ts';
import { parseIfJson } from '../../../core/json/parse.ts';
import type { JsonNode } from '../../../core/json/tape.ts';
import { compactText, sourceText } from '../../../core/json/text.ts';

/** The message names columns and settings, never values. */
export class ColumnRejection extends Error {}

const placeholder = '__debezium_unavailable_value';
/** Debezium's texts for an unknown value, by column type. */
const unavailableTexts: ReadonlySet<string> = new Set([
  JSON.stringify(placeholder),
  JSON.stringify([placeholder]),
  JSON.stringify({ [placeholder]: placeholder }),
  JSON.stringify(Buffer.from(placeholder).toString('base64')),
  JSON.stringify([Buffer.from(placeholder).toString('base64')]),
  JSON.stringify(Buffer.from(placeholder).toString('hex')),
  JSON.stringify([...Buffer.from(placeholder)]),
  // An hstore as text, and the name-based UUID of the placeholder in an array of UUIDs.
  JSON.stringify(JSON.stringify({ [placeholder]: placeholder })),
  JSON.stringify(['b68a35a7-17ad-35b3-af2a-ae46edb4545a']),
]);

/** Whether Debezium did not know the value of a column. */
export function isUnavailable(value: JsonNode): boolean {
  return unavailableTexts.has(compactText(value));
}

/**
 * The JSON text of a column's value. With a schema, decimals are numbers, JSON is parsed, bytes are hexadecimal and
 * times are text; without one the value is unchanged.
 */
export function columnValue(column: string, value: JsonNode, schema: JsonNode | undefined): string {
  if (kindOf(value) === 'null') return 'null';
  if (schema === undefined) {
    if (isVariableScaleDecimal(value)) throw new ColumnRejection(withoutSchema(column));
    return compactText(value);
  }
  const convert =
    conversions.get(stringOf(memberOf(schema, 'name')) ?? '') ??
    conversions.get(stringOf(memberOf(schema, 'type')) ?? '');
  return convert === undefined ? compactText(value) : convert(value, schema, column);
}

type Conversion = (value: JsonNode, schema: JsonNode, column: string) => string;

const conversions: ReadonlyMap<string, Conversion> = new Map<string, Conversion>([
  ['org.apache.kafka.connect.data.Decimal', connectDecimal],
  ['io.debezium.data.VariableScaleDecimal', variableScaleDecimal],
  ['io.debezium.data.Json', json],
  ['io.debezium.data.Bits', bits],
  ['io.debezium.time.Date', (value) => ofEpoch(value, 86_400_000n, 1n, 'date')],
  ['org.apache.kafka.connect.data.Date', (value) => ofEpoch(value, 86_400_000n, 1n, 'date')],
  ['io.debezium.time.Timestamp', (value) => ofEpoch(value, 1n, 1n, 'timestamp')],
  ['org.apache.kafka.connect.data.Timestamp', (value) => ofEpoch(value, 1n, 1n, 'timestamp')],
  ['io.debezium.time.MicroTimestamp', (value) => ofEpoch(value, 1n, 1_000n, 'timestamp')],
  ['io.debezium.time.NanoTimestamp', (value) => ofEpoch(value, 1n, 1_000_000n, 'timestamp')],
  ['io.debezium.time.Time', (value) => ofEpoch(value, 1n, 1n, 'time')],
  ['org.apache.kafka.connect.data.Time', (value) => ofEpoch(value, 1n, 1n, 'time')],
  ['io.debezium.time.MicroTime', (value) => ofEpoch(value, 1n, 1_000n, 'time')],
  ['io.debezium.time.NanoTime', (value) => ofEpoch(value, 1n, 1_000_000n, 'time')],
  ['bytes', bytes],
  ['array', array],
]);

function withoutSchema(column: string): string {
  return (
    `the column ${column} has a decimal as bytes and no schema to read it by: ` +
    'set "decimal.handling.mode" to "string" or "double", or "schemas.enable" to true'
  );
}

function isVariableScaleDecimal(value: JsonNode): boolean {
  if (kindOf(value) !== 'object') return false;
  const scale = memberOf(value, 'scale');
  return scale !== undefined && kindOf(scale) === 'number' && stringOf(memberOf(value, 'value')) !== undefined;
}

function connectDecimal(value: JsonNode, schema: JsonNode): string {
  const text = stringOf(value);
  // The JSON converter's "decimal.format" NUMERIC writes a number.
  if (text === undefined) return compactText(value);
  const parameters = memberOf(schema, 'parameters');
  return decimalText(text, Number((parameters && stringOf(memberOf(parameters, 'scale'))) ?? 0));
}

function variableScaleDecimal(value: JsonNode): string {
  const text = stringOf(memberOf(value, 'value'));
  const scale = memberOf(value, 'scale');
  return text === undefined || scale === undefined ? compactText(value) : decimalText(text, Number(sourceText(scale)));
}

function json(value: JsonNode): string {
  const text = stringOf(value);
  if (text === undefined) return compactText(value);
  return compactText(parseIfJson(text, 9_999) ?? value);
}

/** The bits, highest first. Debezium writes the lowest byte first. */
function bits(value: JsonNode, schema: JsonNode): string {
  const text = stringOf(value);
  if (text === undefined) return compactText(value);
  const parameters = memberOf(schema, 'parameters');
  const length = Number((parameters && stringOf(memberOf(parameters, 'length'))) ?? 0);
  const hexadecimal = Buffer.from(text, 'base64').reverse().toString('hex');
  const digits = hexadecimal === '' ? '' : BigInt(`0x${hexadecimal}`).toString(2);
  return JSON.stringify(digits.padStart(length, '0'));
}

function bytes(value: JsonNode): string {
  const text = stringOf(value);
  return text === undefined ? compactText(value) : JSON.stringify(`\\x${Buffer.from(text, 'base64').toString('hex')}`);
}

function array(value: JsonNode, schema: JsonNode, column: string): string {
  if (kindOf(value) !== 'array') return compactText(value);
  const items = memberOf(schema, 'items');
  return `[${elementsOf(value)
    .map((element) => columnValue(column, element, items))
    .join(',')}]`;
}

/** A count since 1970 as a date, a timestamp without zone, or a time of day. */
function ofEpoch(value: JsonNode, milliseconds: bigint, parts: bigint, as: 'date' | 'timestamp' | 'time'): string {
  const text = sourceText(value);
  if (!/^-?\d{1,19}$/.test(text)) return compactText(value);
  const count = BigInt(text) * milliseconds;
  const whole = count / parts - (count % parts < 0n ? 1n : 0n);
  const date = new Date(Number(whole));
  // MySQL has times of more than a day.
  if (Number.isNaN(date.getTime()) || (as === 'time' && (whole < 0n || whole >= 86_400_000n)))
    return compactText(value);
  const [day = '', time = ''] = date.toISOString().slice(0, -1).split('T');
  const rest = parts === 1n ? '' : String(count - whole * parts).padStart(String(parts).length - 1, '0');
  const shortened = `${time}${rest}`.replace(/\.?0+$/, '');
  return JSON.stringify(as === 'date' ? day : as === 'time' ? shortened : `${day}T${shortened}`);
}

/**
 * The number that Kafka Connect writes as an unscaled two's-complement integer in base64.
 *
 * @example
 * decimalText('MDk=', 2); // '123.45'
 */
function decimalText(base64: string, scale: number): string {
  const decoded = Buffer.from(base64, 'base64');
  let unscaled = decoded.length === 0 ? 0n : BigInt(`0x${decoded.toString('hex')}`);
  if (((decoded[0] ?? 0) & 0x80) !== 0) unscaled -= 1n << BigInt(decoded.length * 8);
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString();
  const sign = unscaled < 0n ? '-' : '';
  if (scale <= 0) return `${sign}${digits === '0' ? '0' : digits + '0'.repeat(-scale)}`;
  const padded = digits.padStart(scale + 1, '0');
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}
