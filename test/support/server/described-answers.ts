import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

/** Longer bodies are checked by the tests that ask for them. In characters. */
const maxCheckedBody = 4 * 1024 * 1024;

interface Answer {
  $ref?: string;
  content?: Record<string, object>;
}

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, Answer> }>>;
  components: { responses: Record<string, Answer> };
}

/** Checks answers of the service against its OpenAPI document, so that the two cannot part. */
export interface AnswerCheck {
  /** Returns the answer; from now on its text is checked when it is read. Throws for a status that is not described. */
  watch(method: string, target: string, response: Response): Response;
}

/** The check for one document. Schemas are compiled when an answer first needs them. */
export function checkAnswers(documentText: string): AnswerCheck {
  const document = JSON.parse(documentText) as Document;
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
  ajv.addFormat('date', /^\d{4}-\d\d-\d\d$/);
  ajv.addFormat('uuid', /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i);
  ajv.addFormat('int64', true);
  ajv.addFormat('uri-reference', true);
  ajv.addSchema({ $id: 'document', ...document });
  const validators = new Map<string, ValidateFunction>();
  const matchers = Object.keys(document.paths).map((path) => ({ path, pattern: patternOf(path) }));

  function validatorAt(pointer: string): ValidateFunction {
    const known = validators.get(pointer) ?? ajv.compile({ $ref: `document#${pointer}` });
    validators.set(pointer, known);
    return known;
  }

  return {
    watch(method, target, response) {
      const found = matchers.find(
        ({ path, pattern }) => pattern.test(target) && operationAt(path, method) !== undefined,
      );
      if (found === undefined) return response;
      const what = `${method} ${found.path} → ${response.status}`;
      const answer = operationAt(found.path, method)?.responses[response.status];
      if (answer === undefined) throw new Error(`${what}: the OpenAPI document has no such status`);
      const [pointer, { content = {} }] = resolved(found.path, method, response.status, answer);
      if (method === 'HEAD') return response;
      const read = response.text.bind(response);
      const text = async () => {
        const body = await read();
        checkBody({ what, text: body, type: response.headers.get('content-type'), content, pointer });
        return body;
      };
      const json = async (): Promise<unknown> => JSON.parse(await text());
      return Object.defineProperties(response, { text: { value: text }, json: { value: json } });
    },
  };

  /** A HEAD is answered as a GET is. */
  function operationAt(path: string, method: string) {
    return document.paths[path]?.[method === 'HEAD' ? 'get' : method.toLowerCase()];
  }

  /** The answer itself, and the JSON pointer that leads to it. */
  function resolved(path: string, method: string, status: number, answer: Answer): [string, Answer] {
    const name = answer.$ref?.split('/').at(-1);
    if (name !== undefined) return [`/components/responses/${name}`, document.components.responses[name] ?? {}];
    return [`/paths/${escaped(path)}/${method.toLowerCase()}/responses/${status}`, answer];
  }

  function checkBody(body: {
    what: string;
    text: string;
    type: string | null;
    content: Record<string, object>;
    pointer: string;
  }): void {
    const { what, text, type, content, pointer } = body;
    if (text === '' && Object.keys(content).length === 0) return;
    const media = type?.split(';')[0] ?? 'no content type';
    if (!(media in content)) throw new Error(`${what}: the OpenAPI document has no ${media}`);
    if (media !== 'application/json' || text.length > maxCheckedBody) return;
    const validate = validatorAt(`${pointer}/content/${escaped(media)}/schema`);
    if (validate(JSON.parse(text))) return;
    const faults = (validate.errors ?? []).slice(0, 5).map(({ instancePath, message }) => `${instancePath} ${message}`);
    throw new Error(
      `${what}: the body is not as the OpenAPI document says: ${faults.join('; ')}\n${text.slice(0, 1_000)}`,
    );
  }
}

function patternOf(path: string): RegExp {
  const parts = path.split(/\{\w+\}/).map((part) => RegExp.escape(part));
  return new RegExp(`^${parts.join('[^/?]+')}(?:\\?|$)`);
}

function escaped(key: string): string {
  return encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'));
}
