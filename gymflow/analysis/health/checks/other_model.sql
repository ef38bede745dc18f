-- The server says that another model answered than the one asked.
-- severity: error
-- applies: calls_hidden or ok_calls > 0
-- observed: not calls_hidden and named_calls = ok_calls
with named as (
    select rollout_id, call, model, reported_model, lower(reported_model) as answering,
        -- An alias stands for whichever snapshot is the newest.
        regexp_replace(lower(model), '[-:@]latest$', '') as asked,
        -- A dated or numbered snapshot of a model is that model; `-mini` or `.1` is another one.
        regexp_replace(
            lower(reported_model),
            '([-:@](\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{3,4}|\d{6}|\d{8}|v\d+(\.\d+)*(:\d+)?|latest))+$', ''
        ) as undated
    from facts.calls
    where role = 'policy' and status = 'ok' and model <> '' and reported_model <> ''
)
select
    rollout_id, 'calls/' || min(call) as locator,
    format('asked {}, answered by {}', min_by(model, call), min_by(reported_model, call)) as message
from named
where answering <> lower(model)
  -- Its name without the owner or the path is the same model.
  and not ends_with('/' || asked, '/' || answering) and not ends_with('/' || answering, '/' || asked)
  and not ends_with('/' || asked, '/' || undated) and not ends_with('/' || undated, '/' || asked)
group by rollout_id
