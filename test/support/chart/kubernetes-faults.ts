import type { Resource } from './render-chart.ts';

/** A schema of Kubernetes as code: it reads every member that it knows. */
interface Schema {
  (resource: unknown): boolean;
  errors?: { instancePath: string; message?: string; keyword: string; params: object }[] | null;
}

/** The names of the schemas in Kubernetes' own OpenAPI document. */
const schemaNames: Readonly<Record<string, string>> = {
  'apps/v1 Deployment': 'IoK8sApiAppsV1Deployment',
  'v1 Service': 'IoK8sApiCoreV1Service',
  'networking.k8s.io/v1 Ingress': 'IoK8sApiNetworkingV1Ingress',
  'policy/v1 PodDisruptionBudget': 'IoK8sApiPolicyV1PodDisruptionBudget',
};

/**
 * What Kubernetes' schema of the resource refuses, and the members that it does not know, such as `/spec/replica is
 * unknown`. Throws where it has no schema of that kind.
 */
export async function kubernetesFaults(resource: Resource): Promise<string[]> {
  const name = schemaNames[`${resource.apiVersion} ${resource.kind}`];
  if (name === undefined) throw new Error(`Kubernetes has no ${resource.apiVersion} ${resource.kind}`);
  const { validate }: { validate: Schema } = await import(`kubernetes-models/_schemas/${name}`);
  const known = new Set<string>();
  validate(observed(resource, '', known));
  const refused = (validate.errors ?? []).map(
    ({ instancePath, keyword, params }) => `${instancePath} ${keyword} ${JSON.stringify(params)}`,
  );
  const unknown = pathsOf(resource, '').filter((path) => !known.has(path));
  return [...refused, ...unknown.map((path) => `${path} is unknown`)];
}

/** The same value, which notes the paths of the members that are read. */
function observed(value: unknown, path: string, read: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return new Proxy(value, {
    get(target, member) {
      read.add(`${path}/${String(member)}`);
      return observed(Reflect.get(target, member), `${path}/${String(member)}`, read);
    },
  });
}

function pathsOf(value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([member, inner]) => [
    `${path}/${member}`,
    ...pathsOf(inner, `${path}/${member}`),
  ]);
}
