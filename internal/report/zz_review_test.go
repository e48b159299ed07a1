package report
import ("testing";"time";"strings";"bytes";"math/rand";"replayd/internal/measure")
func TestZZCorrelation(t *testing.T){
 c,_:=NewCollector(Settings{},CollectorOptions{})
 for _,id:=range []string{"w/0/3","w/0/3.1"} {
  now:=time.Now()
  c.Observe(&measure.Request{ID:id,Session:"s",Outcome:measure.OK,Timeline:measure.Timeline{Due:now,Lane:now,Write:now,End:now}})
 }
 for _,r:=range c.Collected().Rows { t.Log(r.ID,r.Correlation,r.Session) }
}
func TestZZKendall(t *testing.T){
 for _,n:=range []int{20000,80000}{
 v:=make([]float64,n); for i:=range v{v[i]=rand.Float64()}
 s:=time.Now(); NewMannKendall(v); t.Log(n,time.Since(s))}
}
func TestZZGPU(t *testing.T){
 var b bytes.Buffer
 at:=time.Unix(1000,0)
 g:=func(host,uuid string)Beside{return Beside{Source:"http://server:8000",Name:"replayd_gpu_power_watts",Unit:"watts",Kind:Gauge,GPU:true,Labels:map[string]string{"target":"server","gpu":"0","uuid":uuid,"hostname":host},Times:[]time.Time{at},Values:[]float64{1}}}
 WriteJSON(&b,Run{Beside:[]Beside{g("a","GPU-1"),g("b","GPU-2")}})
 s:=b.String(); i:=strings.Index(s,"telemetry_data"); t.Log(s[i:])
}
