/** The names that may stand before a colon. */
export interface Fields<Rule> {
  /** The rule of a field, or undefined for a field that does not exist. */
  field(name: string): Rule | undefined;
  /** The names of the fields, for an error message that begins with "expected". */
  readonly fields: string;
  /** A term, for error messages. */
  readonly example: string;
  /** The field whose items have a field of this name, for an error message. */
  itemOf?(name: string): string | undefined;
}

/**
 * The fields that a collection offers to its queries. All collections share one grammar. A dialect over arbitrary field
 * paths has a rule for every name.
 */
export interface Dialect extends Fields<FieldRule> {
  readonly needs: readonly FieldNeed[];
}

export type FieldRule = TextField | ChoiceField | TimeField | ItemField | GroupField | ValueField;

/** Takes a text, a glob, a regular expression, or a list of texts and globs. */
export interface TextField {
  readonly kind: 'text';
  /** The values are paths: a text also finds the paths that begin with it and a dot. */
  readonly beneath?: true;
  /** Takes neither globs nor regular expressions. */
  readonly exact?: true;
}

/** Takes only one of a few values or a list of them. */
export interface ChoiceField {
  readonly kind: 'choice';
  readonly values: readonly string[];
}

/** Takes only ranges of time. */
export interface TimeField {
  readonly kind: 'time';
}

/** Takes only `elemMatch(…)` with at least one term on the fields of `item`. */
export interface ItemField {
  readonly kind: 'item';
  readonly item: ItemDialect;
}

export type ItemRule = TextField | ChoiceField | ValueField;

export type ItemDialect = Fields<ItemRule>;

/** A JSON value. It takes what a text takes, and comparisons with numbers and strings. */
export interface ValueField {
  readonly kind: 'value';
  /** Whether it takes regular expressions too. */
  readonly expressions: boolean;
}

/** Takes a group of AND or OR. */
export interface GroupField {
  readonly kind: 'group';
}

/** A term of `field` needs a term of `needs` beside it or in an AND that contains it. */
export interface FieldNeed {
  readonly field: string;
  readonly needs: string;
  readonly message: string;
}

/** A fixed set of fields, in the order of messages. A name that ends with a dot and `*` stands for all that begin so. */
export function fixedFields<Rule extends FieldRule>(
  rules: Readonly<Record<string, Rule>>,
  example: string,
): Fields<Rule> {
  const known = new Map(Object.entries(rules));
  const prefixes = [...known]
    .filter(([name]) => name.endsWith('.*'))
    .map(([name, rule]) => ({ prefix: name.slice(0, -1), rule }));
  const has = (rule: FieldRule, name: string) => rule.kind === 'item' && rule.item.field(name) !== undefined;
  return {
    field: (name) => known.get(name) ?? prefixes.find(({ prefix }) => name.startsWith(prefix))?.rule,
    fields: oneOf([...known.keys()]),
    example,
    itemOf: (name) => [...known].find(([, rule]) => has(rule, name))?.[0],
  };
}

/** `a, b or c`. */
export function oneOf(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}
