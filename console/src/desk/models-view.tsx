import { annals } from '../api/annals.ts';
import { useRequest } from '../api/requests.ts';
import { PageHeader, TableScroll } from '../components/page.tsx';
import { EmptyState, FailureBox, Skeleton } from '../components/states.tsx';
import { Name } from '../components/values.tsx';
import { providerNames } from './agents/agent-draft.ts';

/** The models that the service knows. An agent may name others. */
export function ModelsView() {
  const { value, error, reload } = useRequest('models', (signal) => annals().models.list({ signal }));
  return (
    <>
      <PageHeader title="Models" lead="The models that Annals knows of each provider. An agent may use others too." />
      {error === undefined ? undefined : <FailureBox error={error} onRetry={reload} />}
      {value === undefined && error === undefined ? <Skeleton /> : undefined}
      {value?.length === 0 ? (
        <EmptyState icon="agent" title="The service knows no model">
          <p>The operator names models in the file of ANNALS_MODELS_FILE.</p>
        </EmptyState>
      ) : undefined}
      <div class="stack">
        {value?.map(({ provider, models }) => (
          <section key={provider} class="card">
            <h2 class="card-header">{providerNames[provider]}</h2>
            <TableScroll label={`Models of ${providerNames[provider]}`}>
              <table class="table">
                <thead>
                  <tr>
                    <th scope="col">Model</th>
                    <th scope="col">Id</th>
                    <th scope="col">Reasoning</th>
                    <th scope="col">About</th>
                  </tr>
                </thead>
                <tbody>
                  {models.map(({ id, name, description, thinking }) => (
                    <tr key={id}>
                      <td class="nowrap">
                        <Name text={name} />
                      </td>
                      <td class="mono nowrap">
                        <Name text={id} />
                      </td>
                      <td>{thinking === undefined ? <span class="muted">not known</span> : thinking ? 'yes' : 'no'}</td>
                      <td class="muted">{description === undefined ? '' : <Name text={description} />}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </TableScroll>
          </section>
        ))}
      </div>
    </>
  );
}
