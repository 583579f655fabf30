import { annals } from '../api/annals.ts';
import { useRequest } from '../api/requests.ts';
import { PageHeader } from '../components/page.tsx';
import { Answer, EmptyState } from '../components/states.tsx';
import { DataTable } from '../components/table.tsx';
import { Name } from '../components/text.tsx';
import { providerNames } from './agents/agent-draft.ts';

/** The models that the service knows. An agent may name others. */
export function ModelsView() {
  const request = useRequest('models', (signal) => annals().models.list({ signal }));
  return (
    <>
      <PageHeader title="Models" lead="The models that Annals knows of each provider. An agent may use others too." />
      <Answer of={request}>
        {(providers) =>
          providers.length === 0 ? (
            <EmptyState icon="agent" title="The service knows no model">
              <p>The operator names models in the file of ANNALS_MODELS_FILE.</p>
            </EmptyState>
          ) : (
            <div class="stack">
              {providers.map(({ provider, models }) => (
                <section key={provider} class="card">
                  <h2 class="card-header">{providerNames[provider]}</h2>
                  <DataTable
                    label={`Models of ${providerNames[provider]}`}
                    items={models}
                    keyOf={({ id }) => id}
                    columns={[
                      { label: 'Model', class: 'nowrap', cell: ({ name }) => <Name text={name} /> },
                      { label: 'Id', class: 'mono nowrap', cell: ({ id }) => <Name text={id} /> },
                      {
                        label: 'Reasoning',
                        cell: ({ thinking }) =>
                          thinking === undefined ? <span class="muted">not known</span> : thinking ? 'yes' : 'no',
                      },
                      {
                        label: 'About',
                        class: 'muted',
                        cell: ({ description }) => (description === undefined ? '' : <Name text={description} />),
                      },
                    ]}
                  />
                </section>
              ))}
            </div>
          )
        }
      </Answer>
    </>
  );
}
