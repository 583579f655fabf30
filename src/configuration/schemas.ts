import { Type } from 'typebox';
import { unsupportedMember } from '../http/body-members.ts';
import { TenantName } from '../http/tenant-name.ts';
import { mask } from '../recording/mask.ts';

// No control characters, which PostgreSQL's text cannot all hold, no commas, which separate keys in `?keys=`, and no
// lone surrogates, which are no text.
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
  'x-must': 'not contain NUL or lone surrogates',
});

const Secured = Type.Boolean({
  description: 'Encrypted at rest and never shown again. `providerApiToken` and `openAiApiToken` always are.',
});

/** Members that the API family publishes and Annals does not do (contract 3). docs/compatibility.md lists them. */
const unsupported = {
  restricted: Type.Optional(
    unsupportedMember('be false or left out: whoever has configuration.configuration_manage may delete items', false),
  ),
  readOnly: Type.Optional(
    unsupportedMember('be false or left out: whoever has configuration.configuration_manage may change items', false),
  ),
  schemaUrl: Type.Optional(unsupportedMember('be left out: the service does not check values by a schema')),
};

const Version = Type.Integer({ minimum: 1, description: 'Counts up with every change.' });

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

export const NewConfigurations = Type.Array(
  Type.Object(
    {
      key: Key,
      value: Value,
      version: Type.Optional(Type.Integer({ description: 'Of no effect: a new item has version 1.' })),
      description: Type.Optional(Description),
      secured: Type.Optional(Secured),
      ...unsupported,
    },
    { $id: 'NewConfiguration', additionalProperties: false },
  ),
  {
    minItems: 1,
    maxItems: 1_000,
    examples: [[{ key: 'notificationEmail', value: 'shop@example.com' }]],
  },
);

export const ChangedConfiguration = Type.Object(
  {
    key: Type.Optional(Type.String({ description: 'The key of the path, where given.' })),
    value: Value,
    version: Type.Optional(
      Type.Integer({ description: 'The version that this change is meant for; another one is a conflict.' }),
    ),
    description: Type.Optional(Description),
    secured: Type.Optional(Secured),
    ...unsupported,
  },
  {
    $id: 'ChangedConfiguration',
    additionalProperties: false,
    examples: [{ key: 'notificationEmail', value: 'desk@example.com', version: 1 }],
  },
);

export const ConfigurationsPath = Type.Object({ tenant: TenantName });
export const ConfigurationPath = Type.Object({ tenant: TenantName, key: Type.String({ $id: 'ConfigurationKey' }) });

export const ConfigurationsQuery = Type.Object({
  keys: Type.Optional(
    Type.String({ description: 'Only these keys, separated by commas.', examples: ['providerApiToken,site'] }),
  ),
});
