-- The server says that another model answered than the one asked.
-- severity: error
-- applies: calls_hidden or ok_calls > 0
-- observed: not calls_hidden and named_calls = ok_calls
select
    rollout_id, 'calls/' || min(call) as locator,
    format('asked {}, answered by {}', any_value(model), any_value(reported_model)) as message
from facts.calls
where role = 'policy' and status = 'ok' and model <> '' and reported_model <> ''
  -- A dated snapshot of the model asked, or its name without the owner or the path, is the same model.
  and not starts_with(lower(reported_model), lower(model))
  and not ends_with(lower(model), '/' || lower(reported_model))
  and not ends_with(lower(reported_model), '/' || lower(model))
group by rollout_id
