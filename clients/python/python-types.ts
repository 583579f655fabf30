interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
}

/** Characters of a line of Python. */
const maxLine = 100;

/**
 * Types of Python of an OpenAPI document: those that `exported` names (the text of `schemas.py`), and those that they
 * are made of. Numbers are those of the package's parser: `int` and `Decimal`. Throws where a name has no schema.
 */
export function pythonTypes(document: object, exported: string): string {
  const { components } = document as { components: { schemas: Readonly<Record<string, Schema>> } };
  const names = new Set([...exported.matchAll(/^ {4}"(\w+)",$/gm)].map(([, name = '']) => name));
  const texts = new Map<string, string>();
  // What a type refers to is appended while the set is walked.
  for (const name of names) {
    const schema = components.schemas[name];
    if (schema === undefined) throw new Error(`clients/python/annals/schemas.py exports ${name}, which has no schema.`);
    texts.set(name, declaration(name, schema, names));
  }
  const sorted = [...texts].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, text]) => text);
  return `"""Made by clients/python/write-types.ts from the OpenAPI document. Do not edit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union

Number = Union[int, Decimal]


${sorted.join('\n\n\n')}
`;
}

function declaration(name: string, schema: Schema, names: Set<string>): string {
  const type = (one: Schema) => typeOf(one, names);
  if (schema.properties === undefined || hasFurtherMembers(schema))
    return `${name}: TypeAlias = ${alias(type(schema))}`;
  const members = Object.entries(schema.properties).map(([key, one]) => {
    const isRequired = schema.required?.includes(key) === true;
    return [key, isRequired ? type(one) : `NotRequired[${type(one)}]`] as const;
  });
  // A keyword cannot be the name of a member of a class.
  if (members.some(([key]) => key === 'from')) {
    const lines = members.map(([key, text]) => quotedMember(key, text));
    return `${name} = TypedDict(\n    "${name}",\n    {\n${lines.join('')}    },\n)`;
  }
  const lines = members.map(([key, text]) => `    ${key}: ${brokenType(key, text)}\n`);
  return `class ${name}(TypedDict):\n${lines.join('').trimEnd() || '    pass'}`;
}

function hasFurtherMembers({ patternProperties, additionalProperties, properties }: Schema): boolean {
  return patternProperties !== undefined || (properties !== undefined && additionalProperties === true);
}

function typeOf(schema: Schema, names: Set<string>): string {
  const of = (one: Schema) => typeOf(one, names);
  if (schema.$ref !== undefined) {
    const name = schema.$ref.replace(/^.*\//, '');
    names.add(name);
    return name;
  }
  if (schema.anyOf !== undefined) return union(schema.anyOf.map(of));
  if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`;
  if (schema.enum !== undefined) return `Literal[${schema.enum.map(literal).join(', ')}]`;
  if (schema.type === 'array') return `list[${schema.items === undefined ? 'Any' : of(schema.items)}]`;
  if (schema.type === 'object') return `dict[str, ${valuesOf(schema, of)}]`;
  const plain = { string: 'str', integer: 'int', number: 'Number', boolean: 'bool', null: 'None' };
  return plain[schema.type as keyof typeof plain] ?? 'Any';
}

function valuesOf(
  { properties, patternProperties, additionalProperties }: Schema,
  of: (one: Schema) => string,
): string {
  if (properties !== undefined) return 'Any';
  if (typeof additionalProperties === 'object') return of(additionalProperties);
  const [first] = Object.values(patternProperties ?? {});
  return first === undefined ? 'Any' : of(first);
}

function union(types: readonly string[]): string {
  const each = [...new Set(types)];
  return each.length === 1 ? String(each[0]) : `Union[${each.join(', ')}]`;
}

function literal(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return value === null ? 'None' : JSON.stringify(value);
}

/** An alias is evaluated when the module is loaded, before the types that it names. */
function alias(type: string): string {
  return /^(?:dict\[str, (?:Any|str)\]|Any|str)$/.test(type) ? type : pythonText(type);
}

function pythonText(text: string): string {
  return text.includes('"') ? `'${text}'` : `"${text}"`;
}

/** A member of a functional TypedDict, its type as text. */
function quotedMember(key: string, type: string): string {
  const line = `        "${key}": ${pythonText(type)},\n`;
  if (line.length <= maxLine + 1) return line;
  const parts = type.split(', ').map((part, index, all) => pythonText(`${part}${index < all.length - 1 ? ', ' : ''}`));
  return `        "${key}": (\n${parts.map((part) => `            ${part}\n`).join('')}        ),\n`;
}

/** The type of a member of a class; where the line is too long, what is in its brackets has lines of its own. */
function brokenType(key: string, type: string): string {
  return `    ${key}: ${type}`.length <= maxLine ? type : nested(type, 4);
}

function nested(type: string, indent: number): string {
  const [, head = '', inner = ''] = /^(\w+\[)(.*)\]$/.exec(type) ?? [];
  const deeper = ' '.repeat(indent + 4);
  const isList = head === 'Literal[' || head === 'Union[';
  const rest = isList || `${deeper}${inner}`.length <= maxLine ? inner : nested(inner, indent + 4);
  const lines = isList ? inner.split(', ').map((part) => `${deeper}${part},\n`) : [`${deeper}${rest}\n`];
  return `${head}\n${lines.join('')}${' '.repeat(indent)}]`;
}
