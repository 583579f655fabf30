import { type TSchema, type TUnsafe, Type } from 'typebox';
import { mask } from '../../core/sealing.ts';
import { unsupportedMember } from '../../http/body-members.ts';
import { TenantName } from '../../http/chosen-id.ts';

// No control characters, because PostgreSQL's text rejects NUL; no commas, which separate keys in `?keys=`; and no lone
// surrogates, which are not text.
const keyPattern = '^[^\\u0000-\\u001f\\u007f,\\ud800-\\udfff]{1,256}$';
const textPattern = '^[^\\u0000\\ud800-\\udfff]*$';

const Key = Type.String({
  pattern: keyPattern,
  'x-must': 'have 1 to 256 characters, none of them a comma, a control character or a lone surrogate',
  description: 'Up to 256 characters, none of them a comma or a control character.',
  examples: ['providerApiToken'],
});

const Value = Type.Unknown({
  description: `Any JSON. Numbers keep every digit. A secured value is a string; answers show "${mask}" in its place.`,
});

const Description = Type.String({
  maxLength: 4_096,
  pattern: textPattern,
  'x-must': 'be a string without NUL and lone surrogates',
});

const securedDescription =
  'Encrypted at rest and never shown again. `providerApiToken`, `openAiApiToken`, `anthropicApiToken`, `googleApiToken` and `selfHostedProvider` always are.';
const Secured = Type.Boolean({ description: securedDescription });

const Secret = Type.String({
  pattern: '^[^\\ud800-\\udfff]*$',
  'x-must': 'be a string without lone surrogates, because it is secured',
  description: 'The secret.',
});

/** Members of the API family that Annals does not support (contract 3). docs/compatibility.md lists them. */
const unsupported = {
  restricted: unsupportedMember(
    'be false or left out: clients with the scope configuration.configuration_manage may delete items',
    false,
  ),
  readOnly: unsupportedMember(
    'be false or left out: clients with the scope configuration.configuration_manage may change items',
    false,
  ),
  schemaUrl: unsupportedMember('be left out: the service does not validate values with a schema'),
};

const Version = Type.Integer({ minimum: 1, description: 'Increases by 1 with every change.' });

export const ConfigurationItemSchema = Type.Object(
  {
    key: Key,
    value: Value,
    version: Version,
    description: Type.Optional(Description),
    secured: Secured,
  },
  {
    $id: 'Configuration',
    examples: [{ key: 'notificationEmail', value: 'shop@example.com', version: 1, secured: false }],
  },
);

export const ConfigurationList = Type.Array(ConfigurationItemSchema);

/** An item in a request: a secured value is a string. */
interface SentConfiguration {
  value: unknown;
  version?: number;
  description?: string;
  secured?: boolean;
}

/** The two forms of an item, by `secured`. */
function itemForms<Sent extends SentConfiguration>(
  name: string,
  members: Readonly<Record<string, TSchema>>,
  { secret, ...options }: { secret: TSchema } & Readonly<Record<string, unknown>>,
): TUnsafe<Sent> {
  const common = { ...members, description: Type.Optional(Description), ...unsupported };
  const secured = (value: boolean) => Type.Literal(value, { description: securedDescription });
  const forms = [
    Type.Object({ ...common, value: secret, secured: secured(true) }, { $id: `${name}Secured`, ...closed }),
    Type.Object(
      { ...common, value: Value, secured: Type.Optional(secured(false)) },
      { $id: `${name}Plain`, ...closed },
    ),
  ];
  return Type.Unsafe<Sent>({ ...Type.Union(forms), $id: name, ...options });
}

const closed = { additionalProperties: false } as const;

export const NewConfigurations = Type.Array(
  itemForms<SentConfiguration & { key: string }>(
    'NewConfiguration',
    { key: Key, version: Type.Optional(Type.Integer({ description: 'Ignored: a new item has version 1.' })) },
    { secret: { ...Secret, not: { const: mask } } },
  ),
  {
    minItems: 1,
    maxItems: 1_000,
    examples: [[{ key: 'notificationEmail', value: 'shop@example.com' }]],
  },
);

export const ChangedConfiguration = itemForms<SentConfiguration & { key?: string }>(
  'ChangedConfiguration',
  {
    key: Type.Optional(Type.String({ description: 'If present, the key of the path.' })),
    version: Type.Optional(
      Type.Integer({ description: 'The current version. With another one the response is a conflict.' }),
    ),
  },
  { secret: Secret, examples: [{ key: 'notificationEmail', value: 'desk@example.com', version: 1 }] },
);

export const ConfigurationsPath = Type.Object({ tenant: TenantName });
export const ConfigurationPath = Type.Object({ tenant: TenantName, key: Type.String({ $id: 'ConfigurationKey' }) });

export const ConfigurationsQuery = Type.Object({
  keys: Type.Optional(
    Type.String({ description: 'Only these keys, separated by commas.', examples: ['providerApiToken,site'] }),
  ),
});
