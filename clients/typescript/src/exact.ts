import {
  type ExactChangeEntry,
  type ExactConfiguration,
  type ExactDocumentAtMoment,
  exactConfigurations,
  exactHistory,
  exactObjects,
} from './json/exact-answers.ts';
import type { JsonObject } from './json/json-value.ts';
import { Configurations } from './resources/configurations.ts';
import { CustomEntities } from './resources/custom-entities.ts';
import { History } from './resources/history.ts';
import { Instances } from './resources/instances.ts';
import type { Transport } from './transport/transport.ts';

/**
 * The same calls, with values as they were written: `1.10` keeps its zero, `9007199254740993` its last digit, and
 * members their order. Values are those of `@annals/client/json`.
 */
export class Exact {
  readonly history: History<ExactChangeEntry, ExactDocumentAtMoment>;
  readonly configurations: Configurations<ExactConfiguration>;
  readonly customEntities: CustomEntities<JsonObject>;
  readonly #transport: Transport;
  readonly #tenant: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#tenant = tenant;
    this.history = new History(transport, tenant, exactHistory);
    this.configurations = new Configurations(transport, tenant, exactConfigurations);
    this.customEntities = new CustomEntities(transport, tenant, exactObjects);
  }

  instances(type: string): Instances<JsonObject, JsonObject> {
    return new Instances(this.#transport, { tenant: this.#tenant, type }, exactObjects);
  }
}
